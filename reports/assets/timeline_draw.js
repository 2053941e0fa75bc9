// Draws the block timeline onto a canvas: rows of open groups slice by slice, closed groups as the share of
// their rows in each kind. Slices narrower than a pixel merge into the kind that fills most of it, so a frame
// costs about as much as there are pixels.
'use strict';
(function () {
  const GUTTER = 196, AXIS = 24, STRIP = 18, BAND = 24, GAP = 4, RANK_GAP = 12;
  const {color, number} = fusescope;

  // Ticks at 1, 2 or 5 times a power of ten, about one every 110 pixels.
  function ticks(view, width) {
    const rough = (view.end - view.begin) * 110 / width;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const out = [];
    for (let t = Math.ceil(view.begin / step) * step; t <= view.end; t += step) out.push(t);
    return {out, decimals: Math.max(0, Math.min(3, Math.ceil(3 - Math.log10(step))))};
  }

  fusescope.makeDrawing = (model) => {
    const {events, head} = model;
    const paint = {kinds: [], waits: head.kinds.map((kind) => kind.wait), steps: []};
    const drawing = {GUTTER, AXIS, STRIP, lines: []};

    drawing.loadColors = () => {
      paint.kinds = head.kinds.map((kind) => color(kind.color));
      paint.steps = head.steps.map((step) => color(step.color));
      for (const name of ['bg', 'ink', 'muted', 'rule', 'faint', 'panel']) paint[name] = color(name);
      paint.font = '11.5px ' + color('sans');
    };

    // Places of groups and rows from the top of the content; returns its height.
    drawing.layout = (rowHeight) => {
      let y = 0, rank = -1;
      for (const each of model.groups) {
        if (each.rank !== rank) { y += rank < 0 ? 4 : RANK_GAP; rank = each.rank; }
        each.y = y;
        // Few rows share the height of a band.
        each.rowHeight = each.stage === 0 ? 15 : Math.max(rowHeight, BAND / each.tracks.length);
        each.height = each.stage === 0 ? 15 : each.open ? each.tracks.length * each.rowHeight : BAND;
        y += each.height + GAP;
      }
      drawing.rowOfTrack = new Map();
      for (const each of model.groups) {
        each.tracks.forEach(({track}, i) => drawing.rowOfTrack.set(track, {group: each, row: i}));
      }
      return y;
    };
    drawing.centerOf = (track) => {
      const {group, row} = drawing.rowOfTrack.get(track);
      const rows = group.stage === 0 || group.open;
      return rows ? group.y + (row + .5) * group.rowHeight : group.y + group.height / 2;
    };

    // Rectangles collect by kind, so that a frame changes its fill colour once a kind.
    function rows(ctx, each, view, x0, scale, width, top, height, only) {
      const batches = paint.kinds.map(() => []);
      each.tracks.forEach(({track}, row) => {
        const y = each.y + row * each.rowHeight;
        if (y + each.rowHeight < top || y > top + height) return;
        let pixel = -1, best = 0, bestKind = 0;
        const flush = () => {
          if (pixel >= 0) batches[bestKind].push(pixel, 1, y);
          pixel = -1; best = 0;
        };
        for (let i = model.firstAfter(track, view.begin), last = model.first[track + 1]; i < last; ++i) {
          if (events.begin[i] >= view.end) break;
          const from = Math.max(0, (events.begin[i] - view.begin) * scale);
          const to = Math.min(width, (events.end[i] - view.begin) * scale);
          if (to - from >= 1) {
            flush();
            batches[events.kind[i]].push(from, to - from > 3 ? to - from - .5 : to - from, y);
            continue;
          }
          const column = Math.floor(from);
          if (column !== pixel) { flush(); pixel = column; }
          const length = events.end[i] - events.begin[i] + 1e-9;
          if (length > best) { best = length; bestKind = events.kind[i]; }
        }
        flush();
      });
      const gap = each.rowHeight >= 4 ? 1 : 0;
      batches.forEach((batch, kind) => {
        ctx.fillStyle = paint.kinds[kind];
        ctx.globalAlpha = only < 0 || only === kind ? 1 : .13;
        // Waits are thin, work fills its row: the difference shows without colour.
        const full = each.rowHeight - gap;
        const thin = paint.waits[kind] && each.rowHeight >= 3 ? full * .42 : full;
        for (let i = 0; i < batch.length; i += 3) {
          ctx.fillRect(x0 + batch[i], batch[i + 2] + (full - thin) / 2, batch[i + 1], thin);
        }
      });
      ctx.globalAlpha = 1;
    }

    // Share of the tracks in each kind, per pixel: differences at the ends of each slice, summed up.
    function band(ctx, tracks, view, x0, y, scale, width, height, only) {
      const kinds = paint.kinds.length, columns = Math.ceil(width);
      const change = new Float64Array(kinds * (columns + 2));
      for (const track of tracks) {
        for (let i = model.firstAfter(track, view.begin), last = model.first[track + 1]; i < last; ++i) {
          if (events.begin[i] >= view.end) break;
          const from = Math.max(0, (events.begin[i] - view.begin) * scale);
          const to = Math.min(width, (events.end[i] - view.begin) * scale);
          const base = events.kind[i] * (columns + 2);
          const a = Math.floor(from), b = Math.floor(to);
          if (a === b) {
            change[base + a] += to - from;
            change[base + a + 1] -= to - from;
          } else {
            change[base + a] += a + 1 - from;
            change[base + a + 1] += from - a;
            change[base + b] += to - b - 1;
            change[base + b + 1] -= to - b;
          }
        }
      }
      const used = new Float64Array(columns);
      // Work from the bottom up, waits above it.
      for (const wait of [false, true]) {
        for (let kind = 0; kind < kinds; ++kind) {
          if (paint.waits[kind] !== wait) continue;
          let value = 0, any = false;
          const base = kind * (columns + 2);
          ctx.fillStyle = paint.kinds[kind];
          ctx.globalAlpha = only < 0 || only === kind ? 1 : .13;
          ctx.beginPath();
          for (let x = 0; x < columns; ++x) {
            value += change[base + x];
            if (value > 1e-6) {
              const tall = value / tracks.length * height;
              ctx.rect(x0 + x, y + height - used[x] - tall, 1, tall);
              used[x] += tall;
              any = true;
            }
          }
          if (any) ctx.fill();
        }
      }
      ctx.globalAlpha = 1;
    }

    function axis(ctx, view, scale, width, height) {
      const {out, decimals} = ticks(view, width);
      ctx.textAlign = 'center';
      for (const t of out) {
        const x = GUTTER + (t - view.begin) * scale;
        ctx.fillStyle = paint.faint;
        ctx.fillRect(Math.round(x), AXIS, 1, height);
        ctx.fillStyle = paint.muted;
        if (x > GUTTER + 14 && x < GUTTER + width - 24) ctx.fillText(number(t / 1000, decimals), x, AXIS / 2);
      }
      ctx.textAlign = 'left';
      ctx.fillText('µs, ' + fusescope.word, 8, AXIS / 2);
    }

    function strip(ctx, view, scale, width) {
      const {path} = model;
      for (let i = 0; i < path.begin.length; ++i) {
        if (path.end[i] <= view.begin || path.begin[i] >= view.end) continue;
        const from = Math.max(0, (path.begin[i] - view.begin) * scale);
        const to = Math.min(width, (path.end[i] - view.begin) * scale);
        ctx.fillStyle = paint.steps[path.step[i]];
        ctx.fillRect(GUTTER + from, AXIS, Math.max(to - from, .5), STRIP - 5);
      }
      ctx.fillStyle = paint.ink;
      ctx.fillText('critical path', 8, AXIS + (STRIP - 5) / 2);
    }

    function overlay(ctx, view, scale, width) {
      const {path} = model;
      ctx.strokeStyle = paint.ink;
      ctx.lineWidth = 1;
      ctx.globalAlpha = .9;
      ctx.beginPath();
      let lastX = null, lastY = 0;
      for (let i = 0; i < path.begin.length; ++i) {
        if (path.event[i] < 0 || path.end[i] < view.begin || path.begin[i] > view.end) { lastX = null; continue; }
        const y = drawing.centerOf(events.track[path.event[i]]);
        const from = GUTTER + (path.begin[i] - view.begin) * scale;
        const to = GUTTER + (path.end[i] - view.begin) * scale;
        if (lastX === null) ctx.moveTo(from, y); else if (y !== lastY) ctx.lineTo(from, y);
        ctx.lineTo(to, y);
        lastX = to; lastY = y;
      }
      ctx.lineWidth = 3.5;
      ctx.strokeStyle = paint.bg;
      ctx.stroke();
      ctx.lineWidth = 1.8;
      ctx.strokeStyle = paint.ink;
      ctx.stroke();
      ctx.globalAlpha = 1;
    }

    function labels(ctx, scroll, height) {
      ctx.fillStyle = paint.bg;
      ctx.fillRect(0, 0, GUTTER - 1, scroll + height);
      let rank = -1;
      for (const each of model.groups) {
        if (each.y > scroll + height || each.y + each.height < scroll) { rank = each.rank; continue; }
        const y = Math.max(each.y, scroll) + Math.min(each.height, BAND) / 2;
        ctx.fillStyle = paint.ink;
        if (each.rank !== rank) {
          ctx.font = '700 ' + paint.font;
          ctx.fillText('r' + each.rank, 8, y);
          ctx.font = paint.font;
          rank = each.rank;
        }
        if (each.stage === 0) {
          ctx.fillText('stream', 44, y);
          continue;
        }
        ctx.fillStyle = paint.muted;
        ctx.fillText(each.open ? '\u25be' : '\u25b8', 31, y);
        ctx.fillStyle = paint.ink;
        ctx.fillText(each.name, 44, y);
        if (each.open && each.rowHeight >= 11) {
          ctx.textAlign = 'right';
          ctx.fillStyle = paint.muted;
          each.tracks.forEach(({block, lane}, i) => {
            const at = each.y + (i + .5) * each.rowHeight;
            if (at > y + 8) ctx.fillText(each.stage === 1 && each.role === 2 ? block + '.' + lane : block, GUTTER - 6, at);
          });
          ctx.textAlign = 'left';
        }
      }
    }

    drawing.draw = (canvas, state) => {
      const ratio = devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const ctx = canvas.getContext('2d');
      ctx.scale(ratio, ratio);
      ctx.fillStyle = paint.bg;
      ctx.fillRect(0, 0, width, height);
      ctx.font = paint.font;
      ctx.textBaseline = 'middle';
      const plot = width - GUTTER - 8;
      const scale = plot / (state.view.end - state.view.begin);
      const head = AXIS + STRIP;
      axis(ctx, state.view, scale, plot, height);
      strip(ctx, state.view, scale, plot);
      ctx.save();
      ctx.beginPath();
      ctx.rect(0, head, width, height - head);
      ctx.clip();
      ctx.translate(0, head - state.scroll);
      const body = height - head;
      for (const each of model.groups) {
        if (each.y + each.height < state.scroll || each.y > state.scroll + body) continue;
        if (each.stage === 0 || each.open) {
          rows(ctx, each, state.view, GUTTER, scale, plot, state.scroll, body, state.only);
        } else {
          ctx.fillStyle = paint.panel;
          ctx.fillRect(GUTTER, each.y, plot, each.height);
          band(ctx, each.tracks.map(({track}) => track), state.view, GUTTER, each.y, scale, plot, each.height, state.only);
        }
      }
      ctx.save();
      ctx.beginPath();
      ctx.rect(GUTTER, state.scroll, plot, body);
      ctx.clip();
      if (state.path) overlay(ctx, state.view, scale, plot);
      ctx.restore();
      labels(ctx, state.scroll, body);
      ctx.restore();
      if (state.content > body) {
        ctx.fillStyle = paint.rule;
        ctx.fillRect(width - 5, head + state.scroll / state.content * body, 4, Math.max(16, body * body / state.content));
      }
    };

    // The whole wall in one band, and the window of the view on it.
    drawing.minimap = (canvas, state) => {
      const ratio = devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const ctx = canvas.getContext('2d');
      ctx.scale(ratio, ratio);
      ctx.font = paint.font;
      ctx.textBaseline = 'middle';
      const plot = width - GUTTER - 8, scale = plot / model.wall;
      if (!drawing.overview || drawing.overview.key !== width + paint.bg) {
        const cached = document.createElement('canvas');
        cached.width = canvas.width;
        cached.height = canvas.height;
        const inner = cached.getContext('2d');
        inner.scale(ratio, ratio);
        const tracks = head.tracks.map((_, i) => i).filter((i) => head.tracks[i][1] !== 0);
        const most = Math.max(1, tracks.length / 2);  // kernels follow each other: half of the tracks at once
        band(inner, tracks.slice(0), {begin: 0, end: model.wall}, GUTTER, 4 - (height - 8) * (tracks.length / most - 1), scale, plot,
             (height - 8) * tracks.length / most, -1);
        drawing.overview = {key: width + paint.bg, cached};
      }
      ctx.fillStyle = paint.bg;
      ctx.fillRect(0, 0, width, height);
      ctx.drawImage(drawing.overview.cached, 0, 0, width, height);
      ctx.fillStyle = paint.muted;
      ctx.fillText('whole iteration', 8, height / 2);
      const from = GUTTER + state.view.begin * scale, to = GUTTER + state.view.end * scale;
      ctx.fillStyle = paint.bg;
      ctx.globalAlpha = .62;
      ctx.fillRect(GUTTER, 0, from - GUTTER, height);
      ctx.fillRect(to, 0, GUTTER + plot - to, height);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = paint.ink;
      ctx.lineWidth = 1.5;
      ctx.strokeRect(from, 1, Math.max(2, to - from), height - 2);
    };
    return drawing;
  };
})();
