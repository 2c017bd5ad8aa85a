// The example questions of the chat.

/** Sentences that are understood without a model, each with the tool it needs. Those about a home come first. */
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

/** The first few examples that these tools can answer. */
export function examplesFor(tools) {
  const names = new Set(tools);
  return EXAMPLES.filter(([, tool]) => names.has(tool)).map(([text]) => text).slice(0, MAX_EXAMPLES);
}
