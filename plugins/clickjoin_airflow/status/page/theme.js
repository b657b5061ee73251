// Light or dark, before anything is drawn: what the reader chose here, else what Airflow shows, else the system.
"use strict";

(() => {
  const KEY = "clickjoin-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");

  function kept(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage may be refused
    }
  }

  function wanted() {
    const own = kept(KEY);
    if (own === "light" || own === "dark") return own;
    const airflow = kept("theme");
    if (airflow === "light" || airflow === "dark") return airflow;
    return system.matches ? "dark" : "light";
  }

  function show() {
    const theme = wanted();
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new CustomEvent("themed"));
  }

  function offer() {
    const choice = document.getElementById("theme");
    choice.value = kept(KEY) ?? "auto";
    choice.addEventListener("change", () => {
      try {
        localStorage.setItem(KEY, choice.value);
      } catch {
        document.documentElement.dataset.theme = choice.value;
      }
      show();
    });
  }

  show();
  system.addEventListener("change", show);
  addEventListener("storage", show); // Airflow's own switch, in the page around this one
  addEventListener("DOMContentLoaded", offer);
})();
