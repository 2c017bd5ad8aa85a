//! Evaluates each line of standard input and prints its answer: `math_lines < expressions.txt`.
#![expect(clippy::print_stdout, reason = "this program is its output")]

use std::io::BufRead;

fn main() {
    let budget = toolgate_math::Budget::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match toolgate_math::evaluate(&line.replace("\\n", "\n"), &budget) {
            Ok(answer) => println!("{line}   =>   {answer}"),
            Err(error) => println!("{line}   =>   ERR {error}"),
        }
    }
}
