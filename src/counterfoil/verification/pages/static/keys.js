"use strict";

// Which key gives which answer: its place among the answers, and its first letter where no other answer has it.
const RESERVED = new Set(["z"]);

function keysOf(answers) {
  const first = answers.map((answer) => answer.trim().charAt(0).toLowerCase());
  const keys = new Map();
  answers.forEach((answer, place) => {
    if (place < 9) keys.set(String(place + 1), answer);
    const letter = first[place];
    const free = /[a-z]/.test(letter) && !RESERVED.has(letter) && first.filter((other) => other === letter).length === 1;
    if (free) keys.set(letter, answer);
  });
  return keys;
}

// The key to print on an answer's button: the letter where it has one, else the number.
function keyFor(answer, keys) {
  const own = [...keys].filter(([, given]) => given === answer).map(([key]) => key);
  return own.length ? own[own.length - 1].toUpperCase() : "";
}
