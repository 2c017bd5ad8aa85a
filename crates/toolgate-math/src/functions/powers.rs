//! Powers, roots, exponentials and logarithms.

use super::analytic::{analytic_functions, real_or_complex, some_big};
use super::{FunctionRow, each, many, one};
use crate::number::{Complex, Decimal, complex, real};
use crate::ops::counted_big;
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    one("sqrt", ops::square_root),
    one("cbrt", cbrt),
    one("square", |budget, x| {
        power_of_unit_or(budget, x, 2.0, |budget, x| ops::multiply(budget, x, x))
    }),
    one("cube", |budget, x| power_of_unit_or(budget, x, 3.0, cube)),
    one("exp", exp),
    one("expm1", expm1),
    many("log", log),
    each("log2", log2),
    each("log10", log10),
    many("log1p", log1p),
    many("hypot", hypot),
    many("nthRoot", nth_root),
    many("nthRoots", nth_roots),
];

fn power_of_unit_or(
    budget: &mut BudgetTracker,
    x: &Value,
    power: f64,
    f: fn(&mut BudgetTracker, &Value) -> Result<Value>,
) -> Result<Value> {
    match x {
        Value::Unit(unit) => unit.power(budget, power),
        x => f(budget, x),
    }
}

fn cube(budget: &mut BudgetTracker, x: &Value) -> Result<Value> {
    let square = ops::multiply(budget, x, x)?;
    ops::multiply(budget, &square, x)
}

fn cbrt(budget: &mut BudgetTracker, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => Value::Number(libm::cbrt(*x)),
        Value::Complex(x) => {
            let turned = complex(x.abs(), 0.0).ln().scale(1.0 / 3.0).exp();
            turned.mul(complex(0.0, x.arg() / 3.0).exp()).into()
        }
        Value::Big(x) if x.is_finite() => {
            let root = x.abs().root(3);
            return counted_big(budget, root.negate_if(x.is_negative()));
        }
        Value::Big(x) => Value::Big(x.clone()),
        Value::Unit(unit) => return unit.power(budget, 1.0 / 3.0),
        Value::Fraction(_) => return Err(ops::no_fraction()),
        Value::Bool(_) | Value::Text(_) => Value::Number(libm::cbrt(x.to_number("cbrt")?)),
        _ => return Err(type_error("cbrt", x)),
    })
}

analytic_functions! {
    exp "exp": |x| real::exp(x).into(), Complex::exp, |x| some_big(x.exp());
    expm1 "expm1": |x| libm::expm1(x).into(), complex_expm1, |x| some_big(x.exp_m1());
    ln "log": |x| real_or_complex(x >= 0.0, x, libm::log, Complex::ln), Complex::ln, |x| log_of_big(x, Decimal::ln, Complex::ln);
    log2 "log2": |x| real_or_complex(x >= 0.0, x, libm::log2, complex_log2), complex_log2, |x| log_of_big(x, Decimal::log2, complex_log2);
    log10 "log10": |x| real_or_complex(x >= 0.0, x, libm::log10, complex_log10), complex_log10, |x| log_of_big(x, Decimal::log10, complex_log10);
    scalar_log1p "log1p": |x| real_or_complex(x >= -1.0, x, libm::log1p, complex_log1p), complex_log1p,
        |x| log_of_big(&x.add(&Decimal::integer(1)), Decimal::ln, Complex::ln);
}

fn complex_expm1(x: Complex) -> Complex {
    let scale = libm::exp(x.re);
    complex(scale * libm::cos(x.im) - 1.0, scale * libm::sin(x.im))
}

fn complex_log2(x: Complex) -> Complex {
    // The square of a large real number would overflow.
    let length = if x.im == 0.0 {
        x.re.abs()
    } else {
        (x.re * x.re + x.im * x.im).sqrt()
    };
    complex(libm::log2(length), x.arg() / std::f64::consts::LN_2)
}

fn complex_log10(x: Complex) -> Complex {
    x.ln().div(complex(std::f64::consts::LN_10, 0.0))
}

fn complex_log1p(x: Complex) -> Complex {
    complex(x.re + 1.0, x.im).ln()
}

// The logarithm of a negative big number is complex, with the precision of doubles.
fn log_of_big(
    x: &Decimal,
    real: fn(&Decimal) -> Decimal,
    of_complex: fn(Complex) -> Complex,
) -> Option<Value> {
    if x.is_negative() {
        return Some(of_complex(complex(x.to_f64(), 0.0)).into());
    }
    some_big(real(x))
}

fn log(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let value = ln(&mut evaluator.budget, &args[0])?;
    with_base(&mut evaluator.budget, value, args.get(1))
}

fn with_base(budget: &mut BudgetTracker, value: Value, base: Option<&Value>) -> Result<Value> {
    let Some(base) = base else {
        return Ok(value);
    };
    let base = ln(budget, base)?;
    ops::divide(budget, &value, &base)
}

fn log1p(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let value = match &args[0] {
        Value::Matrix(matrix) => matrix.map(&mut evaluator.budget, scalar_log1p)?,
        x => scalar_log1p(&mut evaluator.budget, x)?,
    };
    with_base(&mut evaluator.budget, value, args.get(1))
}

fn hypot(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let values = super::statistics::flatten_arguments(budget, args)?;
    if values.iter().any(|value| matches!(value, Value::Big(_))) {
        let mut sum = Value::Number(0.0);
        for value in &values {
            let square = ops::multiply(budget, value, value)?;
            sum = ops::add(budget, &sum, &square)?;
        }
        return ops::square_root(budget, &sum);
    }
    // Scaled by the largest value, so that squares don't overflow.
    let (mut result, mut largest) = (0.0, 0.0);
    for value in &values {
        if matches!(value, Value::Complex(_) | Value::Unit(_)) {
            return Err(type_error("hypot", value));
        }
        let value = value.to_number("hypot")?.abs();
        if value > largest {
            result *= (largest / value) * (largest / value);
            result += 1.0;
            largest = value;
        } else {
            result += if value > 0.0 {
                (value / largest) * (value / largest)
            } else {
                value
            };
        }
    }
    Ok(Value::Number(largest * f64::sqrt(result)))
}

fn nth_root(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let root = args.get(1).cloned().unwrap_or(Value::Number(2.0));
    ops::broadcast(
        &mut evaluator.budget,
        &args[0],
        &root,
        |budget, a, root| match (a, root) {
            (Value::Complex(_), _) | (_, Value::Complex(_)) => {
                fail("Complex number not supported in function nthRoot. Use nthRoots instead.")
            }
            (Value::Fraction(_), _) => Err(ops::no_fraction()),
            (Value::Big(a), root) => {
                let n = root.to_number("nthRoot")?;
                check_root(a.is_negative(), n)?;
                let whole = n.fract() == 0.0 && (1.0..=64.0).contains(&n);
                let value = if whole && a.is_finite() {
                    a.abs().root(n as u32)
                } else {
                    let inverse = Decimal::integer(1).div(&Decimal::from_number(n));
                    a.abs().pow(&inverse).unwrap_or_else(Decimal::nan)
                };
                budget.charge_steps(500)?;
                counted_big(budget, value.negate_if(a.is_negative()))
            }
            (a, root) => Ok(Value::Number(real_root(
                a.to_number("nthRoot")?,
                root.to_number("nthRoot")?,
            )?)),
        },
    )
}

fn check_root(negative: bool, n: f64) -> Result<()> {
    if n == 0.0 {
        return fail("Root must be non-zero");
    }
    if negative && n.abs() % 2.0 != 1.0 {
        return fail("Root must be odd when a is negative.");
    }
    Ok(())
}

fn real_root(a: f64, n: f64) -> Result<f64> {
    check_root(a < 0.0, n)?;
    let inverted = n < 0.0;
    let n = n.abs();
    if a == 0.0 {
        return Ok(if inverted { f64::INFINITY } else { 0.0 });
    }
    if !a.is_finite() {
        return Ok(if inverted { 0.0 } else { a });
    }
    let root = real::pow(a.abs(), 1.0 / n);
    let root = if a < 0.0 { -root } else { root };
    Ok(if inverted { 1.0 / root } else { root })
}

fn nth_roots(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let n = match args.get(1) {
        Some(n) => n.to_count("nthRoots")?,
        None => 2,
    };
    let x = match &args[0] {
        Value::Complex(x) => *x,
        x => complex(x.to_number("nthRoots")?, 0.0),
    };
    if n == 0 {
        return fail("Root must be greater than zero");
    }
    evaluator.budget.charge_cells(n)?;
    if x.abs() == 0.0 {
        return Ok(Value::list(vec![complex(0.0, 0.0).into()]));
    }
    let radius = real::pow(x.abs(), 1.0 / n as f64);
    let turn = |k: usize| (x.arg() + std::f64::consts::TAU * k as f64) / n as f64;
    // Sine and cosine of a multiple of a quarter turn are not quite 0 and 1 in doubles.
    let axis = (x.re == 0.0) != (x.im == 0.0);
    let roots = (0..n).map(|k| {
        // Roots that lie on an axis, of a number on an axis, are exact.
        let quarter = 4 * k
            + usize::from(x.re < 0.0) * 2
            + usize::from(x.im > 0.0)
            + usize::from(x.im < 0.0) * 3;
        if axis && quarter % n == 0 {
            return match (quarter / n) % 4 {
                0 => complex(radius, 0.0),
                1 => complex(0.0, radius),
                2 => complex(-radius, 0.0),
                _ => complex(0.0, -radius),
            };
        }
        complex(radius * libm::cos(turn(k)), radius * libm::sin(turn(k)))
    });
    Ok(Value::list(roots.map(Value::from).collect()))
}
