// The button that changes between dark and light, and light paper for printing.
(() => {
  "use strict";
  const root = document.documentElement;
  const tell = () => dispatchEvent(new Event("themechange"));
  document.querySelector(".theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    tell();
  });
  let theme;
  addEventListener("beforeprint", () => { theme = root.dataset.theme; root.dataset.theme = "light"; tell(); });
  addEventListener("afterprint", () => { if (theme) root.dataset.theme = theme; else delete root.dataset.theme; tell(); });
})();
