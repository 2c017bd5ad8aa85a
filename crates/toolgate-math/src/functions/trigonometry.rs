//! Trigonometric and hyperbolic functions and their inverses.

use libm::{acosh, asin, asinh, atan, atanh, cos, cosh, sin, sinh, tan, tanh};

use super::analytic::{analytic_functions, real_or_complex, some_big};
use super::{FunctionRow, one, two};
use crate::number::{Complex, Decimal, complex};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    one("sin", |m, x| apply_to_angle(m, "sin", x, f_sin)),
    one("cos", |m, x| apply_to_angle(m, "cos", x, f_cos)),
    one("tan", |m, x| apply_to_angle(m, "tan", x, f_tan)),
    one("cot", |m, x| apply_to_angle(m, "cot", x, f_cot)),
    one("sec", |m, x| apply_to_angle(m, "sec", x, f_sec)),
    one("csc", |m, x| apply_to_angle(m, "csc", x, f_csc)),
    one("asin", f_asin),
    one("acos", f_acos),
    one("atan", f_atan),
    one("acot", f_acot),
    one("asec", f_asec),
    one("acsc", f_acsc),
    two("atan2", atan2),
    one("sinh", f_sinh),
    one("cosh", f_cosh),
    one("tanh", f_tanh),
    one("coth", f_coth),
    one("sech", f_sech),
    one("csch", f_csch),
    one("asinh", f_asinh),
    one("acosh", f_acosh),
    one("atanh", f_atanh),
    one("acoth", f_acoth),
    one("asech", f_asech),
    one("acsch", f_acsch),
];

fn apply_to_angle(
    budget: &mut BudgetTracker,
    name: &str,
    x: &Value,
    f: fn(&mut BudgetTracker, &Value) -> Result<Value>,
) -> Result<Value> {
    match x {
        Value::Unit(unit) if unit.is_angle() => f(budget, unit.require_value()?),
        Value::Unit(_) => fail(format!("Unit in function {name} is not an angle")),
        x => f(budget, x),
    }
}

// The inverse hyperbolic cosine, which is complex below 1.
fn real_acosh(x: f64) -> Value {
    if x >= 1.0 || x.is_nan() {
        acosh(x).into()
    } else if x <= -1.0 {
        complex(libm::log((x * x - 1.0).sqrt() - x), std::f64::consts::PI).into()
    } else {
        complex(0.0, libm::acos(x)).into()
    }
}

fn reciprocal(x: &Decimal) -> Decimal {
    Decimal::integer(1).div(x)
}

analytic_functions! {
    f_sin "sin": |x| sin(x).into(), Complex::sin, |x| some_big(x.sin()?);
    f_cos "cos": |x| cos(x).into(), Complex::cos, |x| some_big(x.cos()?);
    f_tan "tan": |x| tan(x).into(), Complex::tan, |x| some_big(x.tan()?);
    f_cot "cot": |x| (1.0 / tan(x)).into(), Complex::cot, |x| some_big(reciprocal(&x.tan()?));
    f_sec "sec": |x| (1.0 / cos(x)).into(), Complex::sec, |x| some_big(reciprocal(&x.cos()?));
    f_csc "csc": |x| (1.0 / sin(x)).into(), Complex::csc, |x| some_big(reciprocal(&x.sin()?));
    f_asin "asin": |x| real_or_complex((-1.0..=1.0).contains(&x), x, asin, Complex::asin), Complex::asin, |x| some_big(x.asin());
    f_acos "acos": |x| real_or_complex((-1.0..=1.0).contains(&x), x, libm::acos, Complex::acos), Complex::acos, |x| some_big(x.acos());
    f_atan "atan": |x| atan(x).into(), Complex::atan, |x| some_big(x.atan());
    f_acot "acot": |x| atan(1.0 / x).into(), |x| x.apply_to_inverse(Complex::atan), |x| some_big(reciprocal(x).atan());
    f_asec "asec": |x| real_or_complex(x <= -1.0 || x >= 1.0, x, |x| libm::acos(1.0 / x), |x| x.apply_to_inverse(Complex::acos)),
        |x| x.apply_to_inverse(Complex::acos), |x| some_big(reciprocal(x).acos());
    f_acsc "acsc": |x| real_or_complex(x <= -1.0 || x >= 1.0, x, |x| asin(1.0 / x), |x| x.apply_to_inverse(Complex::asin)),
        |x| x.apply_to_inverse(Complex::asin), |x| some_big(reciprocal(x).asin());
    f_sinh "sinh": |x| sinh(x).into(), Complex::sinh, |x| some_big(x.sinh());
    f_cosh "cosh": |x| cosh(x).into(), Complex::cosh, |x| some_big(x.cosh());
    f_tanh "tanh": |x| tanh(x).into(), Complex::tanh, |x| some_big(x.tanh());
    f_coth "coth": |x| (1.0 / tanh(x)).into(), Complex::coth, |x| some_big(reciprocal(&x.tanh()));
    f_sech "sech": |x| (1.0 / cosh(x)).into(), Complex::sech, |x| some_big(reciprocal(&x.cosh()));
    f_csch "csch": |x| (1.0 / sinh(x)).into(), Complex::csch, |x| some_big(reciprocal(&x.sinh()));
    f_asinh "asinh": |x| asinh(x).into(), Complex::asinh, |x| some_big(x.asinh());
    f_acosh "acosh": real_acosh, Complex::acosh, |x| some_big(x.acosh());
    f_atanh "atanh": |x| real_or_complex((-1.0..=1.0).contains(&x), x, atanh, Complex::atanh), Complex::atanh, |x| some_big(x.atanh());
    f_acoth "acoth": |x| real_or_complex(x <= -1.0 || x >= 1.0, x, |x| atanh(1.0 / x), |x| x.apply_to_inverse(Complex::atanh)),
        |x| x.apply_to_inverse(Complex::atanh), |x| some_big(reciprocal(x).atanh());
    f_asech "asech": |x| real_acosh(1.0 / x),
        |x| x.apply_to_inverse(Complex::acosh), |x| some_big(reciprocal(x).acosh());
    f_acsch "acsch": |x| asinh(1.0 / x).into(), |x| x.apply_to_inverse(Complex::asinh), |x| some_big(reciprocal(x).asinh());
}

fn atan2(budget: &mut BudgetTracker, y: &Value, x: &Value) -> Result<Value> {
    ops::broadcast(budget, y, x, |budget, y, x| {
        match ops::number_pair("atan2", y, x)? {
            ops::NumberPair::Number(y, x) => Ok(libm::atan2(y, x).into()),
            ops::NumberPair::Big(y, x) => {
                budget.charge_steps(1000)?;
                let angle = y.div(&x).atan();
                let pi = Decimal::pi();
                Ok(Value::big(match (x.is_negative(), y.is_negative()) {
                    (true, false) => angle.add(&pi),
                    (true, true) => angle.sub(&pi),
                    (false, _) => angle,
                }))
            }
            _ => Err(type_error("atan2", y)),
        }
    })
}
