// The theme, applied before anything is drawn; `hakaru` is what the scripts of a page share.
"use strict";
const hakaru = {};
{
  const root = document.documentElement;
  const THEME = "hakaru-theme";
  root.classList.add("scripted");

  // The choice stays in this browser; "system" is no choice.
  const kept = () => {
    try { return localStorage.getItem(THEME) || "system"; } catch { return "system"; }
  };
  const isDark = () => {
    const theme = root.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  function applyTheme(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  }
  function chooseTheme(theme) {
    try { localStorage.setItem(THEME, theme); } catch { /* a browser that keeps nothing */ }
    applyTheme(theme);
  }
  applyTheme(kept());

  Object.assign(hakaru, { root, kept, isDark, applyTheme, chooseTheme });
}
