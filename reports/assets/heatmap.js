// The sweep as a table of colours: smallest wall at each pair of values of two knobs. The knobs can be
// chosen; the page arrives with the two that explain most of the variance.
'use strict';
(function () {
  const {data, element, number, percent, us} = fusescope;
  const box = document.getElementById('heatmap');
  if (!box || data.grid.axes.length < 2) return;
  const {axes, trials} = data.grid;
  let x = 0, y = 1;

  // Cividis at five stops: light is fast. Text flips to stay readable.
  const stops = [[253, 234, 69], [188, 176, 111], [124, 123, 120], [63, 80, 107], [0, 32, 77]];
  function shade(t) {
    const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
    const i = Math.min(Math.floor(at), stops.length - 2);
    const rgb = stops[i].map((v, c) => Math.round(v + (stops[i + 1][c] - v) * (at - i)));
    const linear = rgb.map((v) => v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
    const luminance = .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
    return {background: `rgb(${rgb})`, color: luminance > .18 ? '#000' : '#fff'};
  }

  function chooser(label, present, choose) {
    const list = element('select', {'aria-label': label});
    axes.forEach((axis, i) => {
      const option = element('option', {value: i}, axis.name + ' (' + percent(axis.explained) + ')');
      option.selected = i === present;
      list.append(option);
    });
    list.addEventListener('change', () => choose(Number(list.value)));
    return element('label', {}, label + ' ', list);
  }

  function draw() {
    const cells = new Map();
    for (const trial of trials) {
      const key = trial.values[y] + '\n' + trial.values[x];
      if (!cells.has(key) || trial.wall < cells.get(key).wall) cells.set(key, trial);
    }
    const walls = [...cells.values()].map((trial) => trial.wall);
    const low = Math.min(...walls), high = Math.max(...walls);
    const head = element('tr', {}, element('th', {scope: 'col'}, axes[y].name + ' \u2193  ' + axes[x].name + ' \u2192'));
    axes[x].values.forEach((value) => head.append(element('th', {scope: 'col'}, value)));
    const body = element('tbody');
    for (const down of axes[y].values) {
      const row = element('tr', {}, element('th', {scope: 'row'}, down));
      for (const across of axes[x].values) {
        const trial = cells.get(down + '\n' + across);
        const cell = element('td', trial ? {} : {class: 'none'}, trial ? number(trial.wall) : 'no run');
        if (trial) {
          const {background, color} = shade(high > low ? (trial.wall - low) / (high - low) : 0);
          cell.style.background = background;
          cell.style.color = color;
          cell.title = '#' + trial.id + ': ' + us(trial.wall) + ', ' +
              axes.map((axis, i) => axis.name + '=' + trial.values[i]).join(' ');
          if (trial.wall === low) cell.className = 'best';
        }
        row.append(cell);
      }
      body.append(row);
    }
    const controls = element('div', {class: 'controls'},
        chooser('across', x, (i) => { if (i === y) y = x; x = i; draw(); }),
        chooser('down', y, (i) => { if (i === x) x = y; y = i; draw(); }),
        element('span', {}, 'light is fast, dark is slow; the percentage is the share of the variance explained'));
    const caption = element('caption', {}, 'Smallest wall, ' + fusescope.word + ' [\u00b5s], over all other knobs');
    box.replaceChildren(controls, element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Heatmap'},
        element('table', {class: 'heat'}, caption, element('thead', {}, head), body)));
  }
  draw();
  box.dataset.ready = 'true';
})();
