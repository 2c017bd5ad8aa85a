// Sets the theme before the first paint, so that the page doesn't flash in the other theme. Not a module, because modules
// run too late for that.
try {
  const theme = localStorage.getItem('toolgate.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // If storage is blocked, the system's theme is used.
}
