// The block timeline's data: columns of varints (see reports/page_data.hpp) into typed arrays, and the
// rows that show them. Times are nanoseconds from the begin of the iteration.
'use strict';
(function () {
  const STAGES = ['stream', 'kernel 1', 'kernel 2', 'final reduce'];
  const ROLES = ['stream', 'compute', 'communication', 'reduce'];

  function reader(bytes, head) {
    return (name) => {
      let [at, size] = head.columns[name] || [0, 0];
      const end = at + size;
      const next = () => {
        let value = 0, scale = 1, byte;
        do {
          byte = bytes[at++];
          value += (byte & 127) * scale;  // not a shift: values pass 32 bits
          scale *= 128;
        } while (byte > 127);
        return value;
      };
      const nextSigned = () => {
        const value = next();
        return value % 2 ? -(value + 1) / 2 : value / 2;
      };
      return {next, nextSigned, more: () => at < end};
    };
  }

  function decode(head, text) {
    const packed = atob(text.trim());
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
    const column = reader(bytes, head);
    const n = head.events;
    const events = {
      begin: new Float64Array(n), end: new Float64Array(n), kind: new Uint8Array(n), token: new Int32Array(n),
      rowBlock: new Int32Array(n), index: new Int32Array(n), peer: new Int16Array(n), track: new Uint32Array(n),
      gate: new Int32Array(n).fill(-1), pathStep: new Int8Array(n).fill(-1),
    };
    const begin = column('begin'), duration = column('duration'), kind = column('kind'), token = column('token');
    const rowBlock = column('row_block'), index = column('index'), peer = column('peer');
    const gates = {token: [], source: [], blame: []};
    const gateToken = column('gate_token'), gateSource = column('gate_source'), gateBlame = column('gate_blame');
    const gateWait = head.kinds.findIndex((each) => each.name === 'gate_wait');
    let i = 0;
    const first = new Uint32Array(head.tracks.length + 1);
    head.tracks.forEach((track, t) => {
      first[t] = i;
      let lastBegin = 0, lastToken = -1, lastRowBlock = -1, lastIndex = -1;
      for (let left = track[5]; left > 0; --left, ++i) {
        events.begin[i] = lastBegin += begin.nextSigned();
        events.end[i] = lastBegin + duration.next();
        events.kind[i] = kind.next();
        events.token[i] = lastToken += token.nextSigned();
        events.rowBlock[i] = lastRowBlock += rowBlock.nextSigned();
        events.index[i] = lastIndex += index.nextSigned();
        events.peer[i] = peer.next() - 1;
        events.track[i] = t;
        if (events.kind[i] === gateWait) {
          events.gate[i] = gates.token.length;
          gates.token.push(gateToken.next() - 1);
          gates.source.push(gateSource.next() - 1);
          gates.blame.push(gateBlame.next() - 1);
        }
      }
    });
    first[head.tracks.length] = i;

    const path = {begin: [], end: [], step: [], event: []};
    const pathDuration = column('path_duration'), pathStep = column('path_step'), pathEvent = column('path_event');
    let at = 0;
    for (let s = 0; s < head.segments; ++s) {
      path.begin.push(at);
      path.end.push(at += pathDuration.next());
      path.step.push(pathStep.next());
      path.event.push(pathEvent.next() - 1);
      if (path.event[s] >= 0) events.pathStep[path.event[s]] = path.step[s];
    }
    return {events, first, gates, path};
  }

  // One group a rank, stage and role; its rows are the tracks, by block and lane.
  function group(head) {
    const groups = new Map();
    head.tracks.forEach(([rank, stage, role, block, lane], track) => {
      const key = (rank * STAGES.length + stage) * ROLES.length + role;
      if (!groups.has(key)) {
        const part = stage === 0 ? 'stream' : stage === 3 ? 'final reduce' : STAGES[stage] + ' ' + ROLES[role];
        groups.set(key, {key, rank, stage, role, name: part, tracks: [], open: false});
      }
      groups.get(key).tracks.push({track, block, lane});
    });
    const list = [...groups.values()].sort((a, b) => a.key - b.key);
    list.forEach((each) => each.tracks.sort((a, b) => a.block - b.block || a.lane - b.lane));
    return list;
  }

  fusescope.loadTimeline = () => {
    const headText = document.getElementById('timeline-head').textContent;
    if (headText.trim() === '') return null;
    const head = JSON.parse(headText);
    const model = {head, wall: head.wall, groups: group(head),
                   ...decode(head, document.getElementById('timeline-bytes').textContent)};
    model.trackName = (t) => {
      const [rank, stage, role, block, lane] = head.tracks[t];
      if (stage === 0) return 'rank ' + rank + ' stream';
      const lanes = role === 2 && stage === 1 ? ' slot ' + lane : '';
      return 'rank ' + rank + ' ' + STAGES[stage] + ' ' + ROLES[role] + ' block ' + block + lanes;
    };
    // First event of a track that ends after `time`; ends do not fall along a track except under a nesting
    // slice, and one too early is only drawn outside of the window.
    model.firstAfter = (track, time) => {
      let low = model.first[track], high = model.first[track + 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (model.events.end[middle] <= time) low = middle + 1; else high = middle;
      }
      return low;
    };
    return model;
  };
})();
