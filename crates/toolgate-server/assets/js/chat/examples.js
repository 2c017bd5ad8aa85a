// What the chat proposes to ask. Pure.

/** Sentences that are understood without a model, each with the tool it needs. The house comes first. */
const EXAMPLES = [
  ['Which lights are on?', 'list_zwave_devices'],
  ['Is anything still on?', 'list_zwave_devices'],
  ['Turn off all the lights', 'control_zwave_device'],
  ['What time is it?', 'datetime'],
  ['What is 17 percent of 340?', 'math_eval'],
  ['How many days until Christmas?', 'datetime'],
  ['What is 2^10?', 'math_eval'],
];
const MAX_EXAMPLES = 4;

/** A few of them that these tools can answer. */
export function examplesFor(tools) {
  const names = new Set(tools);
  return EXAMPLES.filter(([, tool]) => names.has(tool)).map(([text]) => text).slice(0, MAX_EXAMPLES);
}
