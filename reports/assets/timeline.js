// The block timeline: zoom, pan, tooltips, legend, minimap, keyboard. Data and drawing are elsewhere.
'use strict';
(function () {
  const box = document.getElementById('timeline-box');
  if (!box) return;
  const model = fusescope.loadTimeline();
  if (!model) return;
  const {element, number} = fusescope;
  const {events, head, wall} = model;
  const drawing = fusescope.makeDrawing(model);
  const SHORTEST = 200;  // [ns] the narrowest window
  const state = {view: {begin: 0, end: wall}, scroll: 0, content: 0, rowHeight: 3, path: false, only: -1};

  // ---- the parts

  const button = (text, label, act) => {
    const node = element('button', {type: 'button', 'aria-label': label, title: label}, text);
    node.addEventListener('click', act);
    return node;
  };
  const readout = element('span', {class: 'readout', 'aria-live': 'polite'});
  const pathButton = button('critical path', 'Show the critical path', () => {
    state.path = !state.path;
    redraw();
  });
  const minimap = element('canvas', {class: 'minimap', role: 'img', 'aria-label': 'The whole iteration; drag to move the window'});
  const canvas = element('canvas', {class: 'view', tabindex: '0', role: 'application',
    'aria-label': 'Block timeline. Plus and minus zoom, arrows move, square brackets change the height of rows, P shows the critical path, Home shows everything.'});
  const tip = element('div', {class: 'tip', role: 'status'});
  tip.hidden = true;
  const legend = element('div', {class: 'legend', role: 'group', 'aria-label': 'Kinds; press one to pick it out'});
  box.replaceChildren(
      element('div', {class: 'toolbar'},
        button('+', 'Zoom in', () => zoom(.5)), button('\u2212', 'Zoom out', () => zoom(2)),
        button('fit', 'Show the whole iteration', () => show(0, wall)),
        button('taller', 'Taller rows', () => tall(1.5)), button('flatter', 'Flatter rows', () => tall(1 / 1.5)),
        button('open all', 'Open all groups', () => open(() => true)),
        button('close all', 'Close all groups', () => open(() => false)), pathButton, readout),
      minimap, canvas, legend,
      element('p', {class: 'help'}, 'Drag to move; Ctrl + wheel, or the wheel after a click, zooms; click a name to open or close its ' +
        'rows. Keys: + \u2212 arrows, [ ] row height, P critical path, Home all. Work fills its row, waits are thin. ' +
        'A closed group shows the share of its rows in each kind. Add #t=120-180 to the address to open at those microseconds.'),
      tip);

  const used = new Set(events.kind);
  head.kinds.forEach((kind, i) => {
    if (!used.has(i)) return;
    const entry = element('button', {type: 'button', 'aria-pressed': 'false'},
        element('i', {class: 'key', style: 'background:var(--' + kind.color + ')', 'aria-hidden': 'true'}), kind.name.replaceAll('_', ' '));
    entry.addEventListener('click', () => {
      state.only = state.only === i ? -1 : i;
      [...legend.children].forEach((other) => other.setAttribute('aria-pressed', String(other === entry && state.only === i)));
      redraw();
    });
    legend.append(entry);
  });

  // ---- the view

  const bodyHeight = () => canvas.clientHeight - drawing.AXIS - drawing.STRIP;
  function clamp() {
    const length = Math.min(wall, Math.max(SHORTEST, state.view.end - state.view.begin));
    const begin = Math.min(Math.max(0, state.view.begin), wall - length);
    state.view = {begin, end: begin + length};
    state.scroll = Math.min(Math.max(0, state.scroll), Math.max(0, state.content - bodyHeight()));
  }
  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      clamp();
      drawing.draw(canvas, state);
      drawing.minimap(minimap, state);
      pathButton.setAttribute('aria-pressed', String(state.path));
      readout.textContent = number(state.view.begin / 1000, 2) + ' \u2013 ' + number(state.view.end / 1000, 2) + ' \u00b5s of ' +
          number(wall / 1000, 1);
      box.dataset.ready = 'true';
    });
  }
  const tallest = Math.round(Math.min(760, Math.max(480, innerHeight * .8)));
  function relayout() {
    state.content = drawing.layout(state.rowHeight) + 6;
    canvas.style.height = Math.min(tallest, state.content + drawing.AXIS + drawing.STRIP) + 'px';
    redraw();
  }
  function show(begin, end) {
    state.view = {begin, end};
    redraw();
  }
  function zoom(factor, at = .5) {
    const length = state.view.end - state.view.begin;
    const anchor = state.view.begin + at * length;
    const next = Math.min(wall, Math.max(SHORTEST, length * factor));
    show(anchor - at * next, anchor + (1 - at) * next);
  }
  function pan(share) {
    const by = share * (state.view.end - state.view.begin);
    show(state.view.begin + by, state.view.end + by);
  }
  function tall(factor) {
    const before = state.content;
    state.rowHeight = Math.min(26, Math.max(1, state.rowHeight * factor));
    relayout();
    state.scroll *= state.content / before;
  }
  function open(choose) {
    model.groups.forEach((each) => { each.open = each.stage !== 0 && choose(each); });
    relayout();
  }

  // ---- what is under the pointer

  const plotWidth = () => canvas.clientWidth - drawing.GUTTER - 8;
  const timeAt = (x) => state.view.begin + (x - drawing.GUTTER) / plotWidth() * (state.view.end - state.view.begin);
  function groupAt(y) {
    const at = y - drawing.AXIS - drawing.STRIP + state.scroll;
    return y < drawing.AXIS + drawing.STRIP ? undefined
        : model.groups.find((each) => at >= each.y && at < each.y + each.height);
  }
  function eventAt(x, y) {
    const each = groupAt(y);
    if (!each || x < drawing.GUTTER || (each.stage !== 0 && !each.open)) return -1;
    const row = Math.floor((y - drawing.AXIS - drawing.STRIP + state.scroll - each.y) / each.rowHeight);
    if (row >= each.tracks.length) return -1;
    const {track} = each.tracks[row];
    const time = timeAt(x), slack = 2 * (state.view.end - state.view.begin) / plotWidth();
    let found = -1, distance = slack;
    for (let i = model.firstAfter(track, time - slack), last = model.first[track + 1]; i < last && events.begin[i] <= time + slack; ++i) {
      const off = Math.max(events.begin[i] - time, time - events.end[i], 0);
      if (off < distance || off === 0) { found = i; distance = off; }
    }
    return found;
  }
  function describe(i) {
    const kind = head.kinds[events.kind[i]].name;
    const track = events.track[i], rank = head.tracks[track][0];
    const rows = [['where', model.trackName(track)],
                  ['from', number(events.begin[i] / 1000, 3) + ' \u00b5s'],
                  ['for', number((events.end[i] - events.begin[i]) / 1000, 3) + ' \u00b5s, ' + fusescope.word]];
    if (events.token[i] >= 0) {
      rows.push(['token', events.token[i] + (head.tokens_per_rank > 0 ? ', of rank ' + Math.floor(events.token[i] / head.tokens_per_rank) : '')]);
    }
    if (events.rowBlock[i] >= 0) {
      const expert = (head.experts[rank] || [])[events.rowBlock[i]];
      rows.push(['row block', events.rowBlock[i] + (expert === undefined ? '' : ', expert ' + expert)]);
    }
    if (events.index[i] >= 0) {
      const meaning = {gate_wait: 'column tile', activation_wait: 'column tile', mainloop: 'column tile', epilogue: 'column tile', barrier: 'barrier',
                       watermark: 'chunk', reduce_wait: 'chunk', reduce: 'chunk'}[kind] || 'place in the job order';
      rows.push([meaning, events.index[i]]);
    }
    if (events.peer[i] >= 0) {
      const meaning = {pull: 'from', reduce_wait: 'of sender'}[kind] || 'to';
      rows.push([meaning, 'rank ' + events.peer[i]]);
    }
    const gate = events.gate[i];
    if (gate >= 0 && model.gates.blame[gate] >= 0) {
      const token = model.gates.token[gate], source = model.gates.source[gate];
      rows.push(['waited for', (token < 0 ? 'a row not on record' : 'token ' + token) + (source < 0 ? '' : ' from rank ' + source)]);
      rows.push(['it was', head.blames[model.gates.blame[gate]] + ' when the wait began']);
    }
    if (events.pathStep[i] >= 0) rows.push(['critical path', 'yes, as ' + head.steps[events.pathStep[i]].name]);
    return [kind.replaceAll('_', ' '), rows];
  }
  function stripAt(x) {
    const time = timeAt(x), {path} = model;
    const i = path.end.findIndex((end) => end > time);
    if (i < 0 || time < 0) return null;
    return ['critical path: ' + head.steps[path.step[i]].name,
            [['from', number(path.begin[i] / 1000, 3) + ' \u00b5s'],
             ['for', number((path.end[i] - path.begin[i]) / 1000, 3) + ' \u00b5s, ' + fusescope.word],
             ['on', path.event[i] < 0 ? 'no block: a gap' : model.trackName(events.track[path.event[i]])]]];
  }
  function hover(x, y) {
    let content = null;
    if (x >= drawing.GUTTER && y >= drawing.AXIS && y < drawing.AXIS + drawing.STRIP) {
      content = stripAt(x);
    } else {
      const i = eventAt(x, y);
      if (i >= 0) content = describe(i);
    }
    tip.hidden = content === null;
    if (content === null) return;
    const list = element('dl');
    content[1].forEach(([name, value]) => list.append(element('dt', {}, name), element('dd', {}, String(value))));
    tip.replaceChildren(element('b', {}, content[0]), list);
    const left = canvas.offsetLeft + x, top = canvas.offsetTop + y;
    tip.style.left = Math.max(4, Math.min(left + 14, box.clientWidth - tip.offsetWidth - 6)) + 'px';
    tip.style.top = (y > canvas.clientHeight / 2 ? top - tip.offsetHeight - 12 : top + 16) + 'px';
  }

  // ---- hands

  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    drag = {x: event.offsetX, y: event.offsetY, view: state.view, scroll: state.scroll, moved: false};
    canvas.setPointerCapture(event.pointerId);
    tip.hidden = true;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return hover(event.offsetX, event.offsetY);
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.moved = true;
    canvas.classList.add('dragging');
    const by = -dx / plotWidth() * (drag.view.end - drag.view.begin);
    state.scroll = drag.scroll - dy;
    show(drag.view.begin + by, drag.view.end + by);
  });
  const letGo = () => {
    if (drag && !drag.moved && drag.x < drawing.GUTTER) {
      const each = groupAt(drag.y);
      if (each && each.stage !== 0) {
        each.open = !each.open;
        relayout();
      }
    }
    drag = null;
    canvas.classList.remove('dragging');
  };
  canvas.addEventListener('pointerup', letGo);
  canvas.addEventListener('pointercancel', letGo);
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('dblclick', (event) => {
    if (event.offsetX > drawing.GUTTER) zoom(.4, (event.offsetX - drawing.GUTTER) / plotWidth());
  });
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;  // the page scrolls
    event.preventDefault();
    tip.hidden = true;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan((event.deltaX || event.deltaY) / 1000);
    } else if (event.altKey || event.offsetX < drawing.GUTTER) {
      state.scroll += event.deltaY;
      redraw();
    } else {
      zoom(Math.exp(event.deltaY / 400), (event.offsetX - drawing.GUTTER) / plotWidth());
    }
  }, {passive: false});
  canvas.addEventListener('keydown', (event) => {
    const acts = {
      '+': () => zoom(.6), '=': () => zoom(.6), '-': () => zoom(1 / .6),
      ArrowLeft: () => pan(-.15), ArrowRight: () => pan(.15),
      ArrowUp: () => { state.scroll -= 60; redraw(); }, ArrowDown: () => { state.scroll += 60; redraw(); },
      '[': () => tall(1 / 1.5), ']': () => tall(1.5), p: () => pathButton.click(), P: () => pathButton.click(),
      Home: () => show(0, wall), Escape: () => canvas.blur(),
    };
    if (acts[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      acts[event.key]();
    }
  });
  const moveWindow = (event) => {
    const share = (event.offsetX - drawing.GUTTER) / plotWidth();
    const half = (state.view.end - state.view.begin) / 2;
    show(share * wall - half, share * wall + half);
  };
  minimap.addEventListener('pointerdown', (event) => { minimap.setPointerCapture(event.pointerId); moveWindow(event); });
  minimap.addEventListener('pointermove', (event) => { if (event.buttons & 1) moveWindow(event); });

  // "show" buttons of the tables: the span with some room on both sides, its rank, and the critical path.
  document.querySelectorAll('button.show').forEach((each) => each.addEventListener('click', () => {
    const begin = Number(each.dataset.begin), end = Number(each.dataset.end);
    const room = Math.max((end - begin) * .6, 1000);
    const rank = Number(each.dataset.rank);
    const groups = model.groups.filter((group) => group.rank === rank);
    if ('gate' in each.dataset) {
      groups.filter((group) => group.stage === 1 && group.role === 1).forEach((group) => { group.open = true; });
      relayout();
    }
    if (groups.length > 0) state.scroll = Math.max(0, groups[0].y - 4);
    state.path = true;
    show(begin - room, end + room);
    box.scrollIntoView({block: 'center'});
  }));

  // ---- the start: the rank with most of the critical path is open

  const pathTime = new Map();
  model.path.event.forEach((event, i) => {
    if (event < 0 || head.tracks[events.track[event]][1] === 0) return;
    const rank = head.tracks[events.track[event]][0];
    pathTime.set(rank, (pathTime.get(rank) || 0) + model.path.end[i] - model.path.begin[i]);
  });
  const focus = [...pathTime].sort((a, b) => b[1] - a[1]).map(([rank]) => rank)[0] ?? 0;
  model.groups.forEach((each) => { each.open = each.rank === focus && each.role === 1; });
  function jump() {
    const span = /#t=([\d.]+)-([\d.]+)/.exec(location.hash);
    if (!span) return;
    show(Number(span[1]) * 1000, Number(span[2]) * 1000);
    box.scrollIntoView({block: 'center'});
  }
  addEventListener('hashchange', jump);
  new ResizeObserver(redraw).observe(box);
  fusescope.onPaint(() => {
    drawing.loadColors();
    relayout();
  });
  state.scroll = Math.max(0, model.groups.find((each) => each.rank === focus).y - 4);
  jump();
  box.dataset.events = String(head.events);
})();
