// Before the first paint, so that the page never flashes in the other theme. Not a module for that reason.
try {
  const theme = localStorage.getItem('toolgate.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage can be forbidden: then the system's choice holds.
}
