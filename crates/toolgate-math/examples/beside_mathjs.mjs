// The other side of beside_mathjs.rs: `{"expression": "1 + 1", "milliseconds": 3}` per line on stdin, on stdout the mean
// microseconds that mathjs takes to parse and evaluate it, or null where it has no answer.
//
//   node beside_mathjs.mjs NODE_MODULES

import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const { evaluate } = createRequire(`${process.argv[2]}/`)('mathjs')

for await (const line of createInterface({ input: process.stdin })) {
  const { expression, milliseconds } = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(time(expression, milliseconds))}\n`)
}

function time (expression, milliseconds) {
  const start = performance.now()
  let count = 0
  let now
  try {
    do {
      evaluate(expression, new Map())
      count += 1
      now = performance.now()
    } while (now - start < milliseconds)
  } catch {
    return null
  }
  return (now - start) * 1000 / count
}
