// Differences between two texts, by lines (Myers 1986), and how they are shown.
const MOST_EDITS = 1200;
const CONTEXT = 3;

/** Pairs [kind, line]: ' ' in both, '-' only before, '+' only after; null: too different to compare. */
function difference(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const middle = edits(before.slice(start, before.length - end), after.slice(start, after.length - end));
  if (middle === null) return null;
  const same = (line) => [' ', line];
  return [...before.slice(0, start).map(same), ...middle, ...before.slice(before.length - end).map(same)];
}

function edits(before, after) {
  const most = Math.min(before.length + after.length, MOST_EDITS);
  const reach = new Map([[1, 0]]);
  const trace = [];
  for (let count = 0; count <= most; count += 1) {
    trace.push(new Map(reach));
    for (let k = -count; k <= count; k += 2) {
      const down = k === -count || (k !== count && reach.get(k - 1) < reach.get(k + 1));
      let x = down ? reach.get(k + 1) : reach.get(k - 1) + 1;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x += 1;
      reach.set(k, x);
      if (x >= before.length && x - k >= after.length) return walkedBack(before, after, trace);
    }
  }
  return null;
}

function walkedBack(before, after, trace) {
  const lines = [];
  let x = before.length;
  let y = after.length;
  for (let count = trace.length - 1; count >= 0; count -= 1) {
    const reach = trace[count];
    const k = x - y;
    const down = k === -count || (k !== count && reach.get(k - 1) < reach.get(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = reach.get(from);
    while (x > fromX && y > fromX - from && x > 0 && y > 0) lines.push([' ', before[(x -= 1, y -= 1, x)]]);
    if (count > 0) lines.push(down ? ['+', after[(y -= 1)]] : ['-', before[(x -= 1)]]);
  }
  return lines.reverse();
}

/** Only what has changed, with some lines around it. */
function folded(lines) {
  const near = new Uint8Array(lines.length);
  lines.forEach(([kind], place) => {
    if (kind !== ' ') near.fill(1, Math.max(0, place - CONTEXT), place + CONTEXT + 1);
  });
  const shown = [];
  let hidden = 0;
  lines.forEach((line, place) => {
    if (near[place]) {
      if (hidden) shown.push(['@', counted(hidden, 'equal line')]);
      hidden = 0;
      shown.push(line);
    } else hidden += 1;
  });
  if (hidden && shown.length) shown.push(['@', counted(hidden, 'equal line')]);
  return shown;
}

const KINDS = { '+': 'added', '-': 'taken', '@': 'place' };

function shownDifference(before, after) {
  if (before === after) return make('p', { class: 'quiet' }, 'unchanged, as far as this page holds it');
  const lines = difference(before.split('\n'), after.split('\n'));
  if (lines === null) return make('p', { class: 'quiet' }, 'These two have too little in common to compare line by line.');
  const counts = { '+': 0, '-': 0 };
  lines.forEach(([kind]) => { if (kind in counts) counts[kind] += 1; });
  const parts = folded(lines).map(([kind, line]) =>
    make('span', { class: KINDS[kind] }, `${kind === '@' ? '@@' : kind} ${line}\n`));
  return make('div', {},
    make('p', { class: 'quiet' }, `${counted(counts['+'], 'line')} added, ${number(counts['-'])} taken away`),
    make('pre', { class: 'diff', tabindex: '0' }, ...parts));
}
