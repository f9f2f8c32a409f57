// The certificate: a button that prints it alone, on a page of its own.

import { all, define } from "../shared.js";

define("tl-certificate", (certificate) => {
  const root = document.documentElement;
  const alone = (on) => {
    root.classList.toggle("tl-alone", on);
    certificate.classList.toggle("tl-asked", on);
  };
  addEventListener("afterprint", () => alone(false));
  all(certificate, "button").forEach((button) =>
    button.addEventListener("click", () => {
      alone(true);
      print();
    })
  );
});
