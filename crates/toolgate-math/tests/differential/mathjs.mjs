// Answers expressions with the real mathjs: one JSON string per line on stdin, one JSON object per line on stdout.
//
//   node mathjs.mjs NODE_MODULES
//
//   {"ok":true,"type":"number","number":"0.30000000000000004","format":"0.30000000000000004","json":0.30000000000000004}
//   {"ok":true,"type":"Unit","format":"2 inch","json":"2 inch"}
//   {"ok":false,"error":"Undefined symbol x"}
//
// `number` is there for numbers only, as text that reads back as the very same double. `json` is what the tool should
// answer; it is missing where JSON has no such value (Infinity, NaN, functions).

import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const math = createRequire(`${process.argv[2]}/`)('mathjs')
const freshUnits = rememberUnits()

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`)
}

function answer (expression) {
  try {
    freshUnits()
    const value = math.evaluate(expression, new Map())
    const reply = { ok: true, type: math.typeOf(value), format: format(value), json: toJson(value) }
    if (typeof value === 'number') reply.number = Object.is(value, -0) ? '-0' : String(value)
    return reply
  } catch (error) {
    return { ok: false, error: String(error?.message ?? error) }
  }
}

// Mathjs remembers the units it has read and prefers them from then on: `2 m^2` is `21.5 sqft` after someone has said
// `1 sqft`. No expression should see what came before, so this gives a function that makes it forget.
function rememberUnits () {
  const known = math.Unit.UNIT_SYSTEMS.auto
  const fresh = { ...known }
  return () => {
    for (const name of Object.keys(known)) delete known[name]
    Object.assign(known, fresh)
  }
}

// Mathjs' format, but for arrays and objects among several results, which it spells `1,2` and `[object Object]`.
function format (value) {
  const spoiled = math.isResultSet(value) && value.entries.some(entry => /^(Array|Object)$/.test(math.typeOf(entry)))
  return spoiled ? `[${value.entries.map(entry => math.format(entry)).join(', ')}]` : math.format(value)
}

// `undefined` stands for "JSON can not carry this" and, as JSON.stringify drops it, for the missing field.
function toJson (value) {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return Number(value)
  if (typeof value === 'function') return undefined
  if (value === null || value === undefined) return null
  // The results of several statements, without those hidden by `;`. One alone needs no list around it.
  if (math.isResultSet(value)) {
    const shown = value.entries.map(toJson)
    return shown.length > 1 ? all(shown) : shown[0]
  }
  if (math.isMatrix(value) || math.isRange(value)) return toJson(value.toArray())
  if (Array.isArray(value)) return all(value.map(toJson))
  if (math.typeOf(value) === 'Object') {
    const entries = Object.entries(value).map(([key, entry]) => [key, toJson(entry)])
    return all(entries.map(([, entry]) => entry)) && Object.fromEntries(entries)
  }
  return math.format(value)
}

function all (values) {
  return values.includes(undefined) ? undefined : values
}
