// What every script of the page shares: the data, colours of the present theme, numbers in the report's
// form. Scripts hang their parts on `fusescope`.
'use strict';
const fusescope = {};

(function () {
  const read = (id) => {
    const text = document.getElementById(id).textContent;
    return text.trim() === '' ? null : JSON.parse(text);
  };
  fusescope.data = read('data');
  fusescope.word = fusescope.data.word;

  // A custom property of the page: "step-gemm-1", "ink".
  fusescope.color = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

  const formats = new Map();
  fusescope.number = (value, decimals = 1) => {
    if (!formats.has(decimals)) {
      formats.set(decimals, new Intl.NumberFormat('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals}));
    }
    return formats.get(decimals).format(value).replace('-', '\u2212');
  };
  fusescope.us = (value, decimals = 1) => fusescope.number(value, decimals) + ' \u00b5s';
  fusescope.percent = (share, sign = false) => (sign && share > 0 ? '+' : '') + fusescope.number(share * 100) + '%';

  fusescope.element = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // Called again whenever colours change; the argument says why ("theme", "print").
  const painters = [];
  fusescope.onPaint = (paint) => { painters.push(paint); paint('first'); };
  fusescope.repaint = (reason) => painters.forEach((paint) => paint(reason));
})();
