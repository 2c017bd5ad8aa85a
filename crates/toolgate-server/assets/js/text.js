// Text from elsewhere, so that what one reads is what is there.

/** Marks that turn the direction of the text around them or are not to be seen at all; joiners belong to scripts and stay. */
const HIDDEN = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The same with such marks written out, as JSON would escape them. */
export function visible(text) {
  return text.replace(HIDDEN, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
