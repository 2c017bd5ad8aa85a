//! Attacks on the evaluator, each in a thread with 256 KiB of stack.

use crate::{Budget, evaluate};

/// Unoptimized stack frames are several times larger.
const STACK: usize = if cfg!(debug_assertions) {
    1024 * 1024
} else {
    256 * 1024
};

/// Evaluates, writes and drops the answer on a small stack.
fn evaluate_on_a_small_stack(expression: &str, budget: Budget) -> Result<String, String> {
    let expression = expression.to_owned();
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let answer = evaluate(&expression, &budget).map_err(|error| error.to_string())?;
            let text = answer.to_string();
            answer.to_json().map_err(|error| error.to_string())?;
            Ok(text)
        })
        .expect("a thread")
        .join()
        .expect("no panic")
}

fn attacks() -> Vec<(&'static str, String)> {
    let nested =
        |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    vec![
        ("tower of powers", "9^9^9^9".into()),
        (
            "a big number beyond doubles in hexadecimal",
            "hex(bignumber(\"1e400\"))".into(),
        ),
        ("factorial", "200000!".into()),
        ("big factorial", "bignumber(200000)!".into()),
        ("open brackets", "(".repeat(40_000)),
        ("balanced brackets", nested("(", "1", ")", 7_000)),
        ("digits", "9".repeat(1_000_000)),
        ("terms", "1+".repeat(200_000) + "1"),
        ("unary minus", "-".repeat(16_000) + "x"),
        ("range", "1:1e12".into()),
        ("matrix", "ones(1e6,1e6)".into()),
        ("recursion", "f(x)=f(x);f(1)".into()),
        ("mutual recursion", "f(x)=g(x+1);g(x)=f(x)+1;f(1)".into()),
        ("recursion in a callback", "f(x)=map([1],f);f(1)".into()),
        (
            "recursion over inline expressions",
            "f(x)=map([1],f(y));f(1)".into(),
        ),
        ("lists", nested("[", "1", "]", 7_000)),
        (
            "lists in lists by a callback",
            "a=[1];map(1:30000,f(x)=(a=map([1],g(y)=a)));a".into(),
        ),
        (
            "indexes in indexes",
            "a=1;map(1:30000,f(x)=(a=index(a)));a".into(),
        ),
        (
            "many dimensions in many lists",
            "a=zeros(ones(150));".to_owned() + &"a=map([1],g(y)=a);".repeat(200) + "a",
        ),
        (
            "a big number beside a long list",
            "2^9^3^bignumber(2)% < 2^2:22222".into(),
        ),
        ("fractions of a long list", "fraction(1:60000)".into()),
        ("factorials of a long list", "(1:90000)!".into()),
        (
            "how deep a long list nests, again and again",
            "a=zeros(100000);map(1:3000,f(x)={b:a});1".into(),
        ),
        ("objects", nested("{a:", "1", "}", 3_000)),
        (
            "object built by statements",
            "a={b:1};".to_owned() + &"a={b:a};".repeat(1_900) + "a",
        ),
        (
            "shared object",
            "a={b:1};".to_owned() + &"a={b:a,c:a};".repeat(60) + "a",
        ),
        (
            "closures",
            "f(x)=x;".to_owned() + &"g(f)=(h(y)=f(y));f=g(f);".repeat(600) + "f(1)",
        ),
        ("fraction power", "fraction(3)^100000000".into()),
        (
            "fraction growth",
            "a=fraction(1,3);".to_owned() + &"a=a*a+1;".repeat(40) + "a",
        ),
        (
            "fractions in a matrix",
            "zeros(300,300)+fraction(2)^6000".into(),
        ),
        ("big power", "bignumber(9)^bignumber(\"9e14\")".into()),
        ("big remainder", "bignumber(\"1e900000\") mod 7".into()),
        ("big shift", "bignumber(1) << bignumber(1000000)".into()),
        ("big sine", "sin(bignumber(\"1e100000\"))".into()),
        (
            "text doubling",
            "a=\"aaaaaaaaaaaaaaaa\";".to_owned() + &"a=concat(a,a);".repeat(40) + "a",
        ),
        (
            "ends of a long text",
            "a=\"aaaaaaaaaaaaaaaa\";".to_owned()
                + &"a=concat(a,a);".repeat(11)
                + "map(1:3000,f(x)=a[end-end-end-end+3*end])",
        ),
        (
            "a long text as a number",
            "a=\"1234567890123456\";".to_owned()
                + &"a=concat(a,a);".repeat(11)
                + "map(1:3000,f(x)=a==a)",
        ),
        (
            "matrix doubling",
            "a=[1,2];".to_owned() + &"a=concat(a,a);".repeat(40) + "a",
        ),
        ("matrix power", "ones(60,60)^1e9".into()),
        ("inverse", "inv(identity(400))".into()),
        ("permutations", "permutations(1e15,1e14)".into()),
        ("combinations", "combinations(1e15,5e14)".into()),
        ("powerset", "setPowerset(1:40)".into()),
        (
            "distinct objects of a set",
            "setCartesian(1:5000,1:5000)".into(),
        ),
        ("resize", "resize([1],[1e5,1e5])".into()),
        ("index far away", "a=[1];a[1e15]=1".into()),
        ("letter far away", "a=\"a\";a[1e15]=\"b\"".into()),
        ("kron", "kron(ones(300,300),ones(300,300))".into()),
        (
            "deep chain of calls",
            "sqrt(".repeat(3_000) + "1" + &")".repeat(3_000),
        ),
        ("conditionals", "1?".repeat(5_000) + "1"),
        ("assignments", "a=".repeat(8_000) + "1"),
        ("powers", "2^".repeat(8_000) + "2"),
        (
            "many names",
            (0..3_000).map(|i| format!("v{i}=1;")).collect::<String>() + "v1",
        ),
        ("percentages", "1%(".repeat(5_000)),
        (
            "precision",
            "format(1,{notation:\"fixed\",precision:1e9})".into(),
        ),
        ("repeat map", "map(1:100000,f(x)=sum(1:1000))".into()),
        (
            "exponential fibonacci",
            "f(n)=n<2?n:f(n-1)+f(n-2);f(60)".into(),
        ),
        ("sort with nonsense order", "sort(1:50000,f(a,b)=1)".into()),
        ("expm", "expm(ones(100,100)*1e5)".into()),
        ("stirling", "stirlingS2(300,150)+bellNumbers(300)".into()),
        ("quantiles", "quantileSeq(1:10,1e9)".into()),
        (
            "dimensions",
            "zeros(".to_owned() + &"1,".repeat(5_000) + "1)",
        ),
        (
            "unit powers",
            "a=m;".to_owned() + &"a=a*a;".repeat(60) + "a",
        ),
        ("transposes", "[1,2]".to_owned() + &"'".repeat(16_000)),
        ("accessors", "a={};a".to_owned() + &".b".repeat(4_000)),
        ("chained comparison", "1<".repeat(8_000) + "1"),
    ]
}

/// The long time limit makes the depth limit end the attacks, even on a slow machine.
#[test]
fn no_value_nests_too_deep_to_format_and_drop() {
    let patient = Budget {
        time: std::time::Duration::from_secs(60),
        ..Budget::default()
    };
    for expression in [
        "a=[1];map(1:30000,f(x)=(a=map([1],g(y)=a)));a",
        "a=1;map(1:30000,f(x)=(a=index(a)));a",
        "a={};map(1:30000,f(x)=(a.b=a));a",
        "a={};map(1:30000,f(x)=(a={b:a}));a",
        "h(f)=(g(x)=f);a=1;map(1:30000,k(y)=(a=h(a)));a",
        "a=zeros(ones(150));map(1:30000,f(x)=(a=map([1],g(y)=a)));a",
    ] {
        let error = evaluate_on_a_small_stack(expression, patient).expect_err(expression);
        assert!(error.contains("nests deeper"), "{expression}: {error}");
    }
    let deep = "a=zeros(ones(100));".to_owned() + &"a=map([1],g(y)=a);".repeat(55) + "a";
    assert!(evaluate_on_a_small_stack(&deep, patient).is_ok());
}

#[test]
fn every_attack_ends_quickly_on_a_small_stack() {
    #![expect(clippy::disallowed_types, reason = "the promise is about real time")]
    // Unoptimized code is an order of magnitude slower; the promise of 50 ms is
    // for a release build.
    let limit = std::time::Duration::from_millis(if cfg!(debug_assertions) { 1500 } else { 50 });
    for (name, expression) in attacks() {
        let start = std::time::Instant::now();
        let answer = evaluate_on_a_small_stack(&expression, Budget::default());
        let took = start.elapsed();
        if std::env::var_os("MATH_ATTACKS").is_some() {
            let shown: String = format!("{answer:?}").chars().take(90).collect();
            println!("{name}: {took:?} {shown}");
        }
        assert!(took < limit, "{name} took {took:?}");
    }
}
