// The quiz: questions, each with its reasons, and how many were right at the first try.

import { choice } from "../choice.js";
import { all, define } from "../shared.js";

define("tl-quiz", (quiz) => {
  const boxes = all(quiz, "fieldset");
  const score = quiz.lastElementChild;
  const tries = new Map();
  boxes.forEach((box) =>
    choice(box, (right) => {
      if (!tries.has(box)) tries.set(box, right);
      const won = [...tries.values()].filter(Boolean).length;
      score.textContent =
        tries.size < boxes.length
          ? `${tries.size} of ${boxes.length} answered.`
          : `${won} of ${boxes.length} right at the first try.`;
    })
  );
});
