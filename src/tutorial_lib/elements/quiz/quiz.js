// The quiz: questions, each with its reasons, how many were right at the first try, and what to
// read again for the others.

import { choice } from "../choice.js";
import { all, define, report } from "../shared.js";

// The links of some questions, each once, as a sentence.
const readAgain = (boxes) => {
  const links = new Map(boxes.flatMap((box) => all(box, "a").map((link) => [link.href, link])));
  const copies = [...links.values()].map((link) => link.cloneNode(true));
  return copies.flatMap((link, i) => [i ? "; " : " Read again: ", link]);
};

define("tl-quiz", (quiz) => {
  const boxes = all(quiz, "fieldset");
  const score = quiz.lastElementChild;
  const count = () => {
    const done = questions.filter(({ answered }) => answered()).length;
    const missed = boxes.filter((_, i) => !questions[i].right());
    const of = boxes.length;
    if (done == of) {
      const won = `${of - missed.length} of ${of} right at the first try.`;
      score.replaceChildren(won, ...readAgain(missed));
    } else score.textContent = done ? `${done} of ${of} answered.` : "";
    return { done, of };
  };
  const questions = boxes.map((box) =>
    choice(box, () => {
      const { done, of } = count();
      const states = questions.map(({ name, state }) => [name, state()]);
      report(quiz, Object.fromEntries(states), done, of);
    })
  );
  quiz.recall = (state) =>
    questions.filter(({ name, recall }) => recall(state?.[name])).length > 0 && count();
});
