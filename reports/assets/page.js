// The page around the charts: folded tables, section marks, theme, print.
'use strict';
(function () {
  document.querySelectorAll('button.unfold').forEach((button) => {
    const table = button.closest('.table');
    const words = button.textContent;
    const fold = (folded) => {
      table.classList.toggle('folded', folded);
      button.setAttribute('aria-expanded', String(!folded));
      button.textContent = folded ? 'Show ' + words : 'Hide ' + words;
    };
    fold(true);
    button.addEventListener('click', () => fold(!table.classList.contains('folded')));
  });

  const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
  const visible = new Set();
  const watcher = new IntersectionObserver((entries) => {
    entries.forEach(({target, isIntersecting}) => visible[isIntersecting ? 'add' : 'delete'](target.id));
    const first = [...links.keys()].find((id) => visible.has(id));
    links.forEach((link, id) => {
      if (id === first) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
    });
  }, {rootMargin: '-10% 0px -60% 0px'});
  document.querySelectorAll('main section').forEach((section) => watcher.observe(section));

  const root = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches;
  document.getElementById('theme').addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    fusescope.repaint('theme');
  });
  dark.addEventListener('change', () => fusescope.repaint('theme'));
  let before;
  addEventListener('beforeprint', () => {
    before = root.dataset.theme;
    root.dataset.theme = 'light';
    fusescope.repaint('print');
  });
  addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    fusescope.repaint('theme');
  });
  root.dataset.ready = 'true';
})();
