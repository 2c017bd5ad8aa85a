//! From words to sound: sentences, engines, and where sound is played.
