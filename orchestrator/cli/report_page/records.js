// Experiments, and the answers that agents got to their commits.
const [A_ISLAND, A_NUMBER, A_COMMITS, A_ENDING, A_WALL, A_CPU, A_FIRST, A_SCRIPT, A_PRINTED] = Array(9).keys();
const [S_COMMIT, S_BEST, S_CELL, S_MIGRATION, S_NOTICE, S_SENT, S_CHECKED] = Array(7).keys();

function openButton(name, open) {
  return make('button', { type: 'button', class: 'link', on: { click: open } }, name);
}

function analysisList(run) {
  const rows = run.data.analyses;
  if (!rows.length) return make('p', { class: 'quiet' }, 'No experiment was run.');
  const detail = make('div', { class: 'detail', 'aria-live': 'polite' });
  const show = (row) => detail.replaceChildren(
    make('h4', {}, `Experiment ${row[A_NUMBER]} of island ${row[A_ISLAND]}`),
    make('p', { class: 'quiet' }, `after ${counted(row[A_COMMITS], 'commit')}; ended with ${row[A_ENDING]} after ${number(row[A_WALL])} s`),
    tabs('Experiment', [
      { name: 'What it printed', fill: async (panel) => panel.append(make('pre', { tabindex: '0' }, (await textOf(row[A_PRINTED])) || '(nothing)')) },
      { name: 'Script', fill: async (panel) => panel.append(make('pre', { tabindex: '0' }, await textOf(row[A_SCRIPT]))) },
    ]));
  const list = pagedTable({
    caption: 'Experiments',
    columns: ['experiment', 'island', 'after commits', 'ending', 'seconds', 'first line printed'],
    numeric: [1, 2, 4],
    size: 15,
    rows,
    sorts: [null, (row) => row[A_ISLAND], (row) => row[A_COMMITS], (row) => row[A_ENDING], (row) => row[A_WALL], null],
    cells: (row) => [
      openButton(`i${row[A_ISLAND]}-a${String(row[A_NUMBER]).padStart(4, '0')}`, () => show(row)),
      number(row[A_ISLAND]), number(row[A_COMMITS]), row[A_ENDING], number(row[A_WALL]), row[A_FIRST],
    ],
  });
  show(rows[0]);
  return make('div', {}, list.node, leftOut(run.data.left_out.analyses, 'experiment'), detail);
}

function inOrder(a, b) {
  const [x, y] = [a.split(','), b.split(',')];
  for (let at = 0; at < x.length; at += 1) if (x[at] !== y[at]) return Number(x[at]) - Number(y[at]);
  return 0;
}

/** The elites of an island's grid after one of its commits, in the order of their cells. */
function gridAfter(run, id) {
  const island = run.byId.get(id)[ISLAND];
  const cells = new Map();
  if (run.data.initial_cells[island]) cells.set(run.data.initial_cells[island], 'initial');
  for (const row of run.data.answers) {
    if (!run.byId.has(row[S_COMMIT]) || run.byId.get(row[S_COMMIT])[ISLAND] !== island) continue;
    if (row[S_CELL]) cells.set(row[S_CELL], row[S_COMMIT]);
    if (row[S_COMMIT] === id) break;
  }
  return [...cells].sort(([a], [b]) => inOrder(a, b)).map(([, elite]) => elite);
}

/** [verdict, line, line as a migrant, budget] of a candidate. */
async function linesOf(run, id) {
  const row = run.byId.get(id);
  if (!row || row[ANSWER] < 0) return ['', `(the line of ${id} is left out of this page)`, `(the line of ${id} is left out of this page)`, ''];
  return (await textOf(row[ANSWER])).split('\n');
}

const NOTICES = page.notices;

/** The answer to a commit, as its agent got it. */
async function answerText(run, id) {
  const row = run.answerOf.get(id);
  const [verdict, , , budget] = await linesOf(run, id);
  const best = row[S_BEST] === null ? 'null' : (await linesOf(run, row[S_BEST]))[1];
  const elites = await Promise.all(gridAfter(run, id).map(async (elite) => (await linesOf(run, elite))[1]));
  let text = `${verdict.slice(0, -1)}, "island_best": ${best}, "grid": [${elites.join(', ')}]`;
  if (row[S_MIGRATION] !== null) {
    const shown = await Promise.all(row[S_MIGRATION].map(async (one) => (await linesOf(run, one))[2]));
    text += `, "migration": [${shown.join(', ')}]`;
  }
  const notice = NOTICES[row[S_NOTICE]];
  return `${text}, "budget": ${budget}, "notice": ${notice === null ? '(none, or that the context is nearly full)' : notice}}`;
}

function standing(row) {
  if (!row[S_SENT]) return 'never sent: no request followed';
  return row[S_CHECKED] ? 'sent; checked against the recorded digest' : 'sent; rebuilt, not checked';
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function showAnswer(run, id, panel) {
  const text = await answerText(run, id);
  const block = make('pre', { tabindex: '0', class: 'answer' }, readable(text));
  const box = make('input', { type: 'checkbox', on: { change: () => { block.textContent = box.checked ? text : readable(text); } } });
  panel.append(
    make('p', { class: 'quiet' }, `${standing(run.answerOf.get(id))}; ${counted(text.length, 'character')}`),
    make('label', {}, box, ' exactly as it was, on one line'), block);
}

function answerList(run) {
  const rows = run.data.answers;
  if (!rows.length) return make('p', { class: 'quiet' }, 'There is no answer to show.');
  const detail = make('div', { class: 'detail', 'aria-live': 'polite' });
  const show = async (row) => {
    const fresh = make('div', {}, make('h4', {}, `The answer to ${row[S_COMMIT]}`));
    await showAnswer(run, row[S_COMMIT], fresh);
    detail.replaceChildren(fresh);
  };
  const verdict = (row) => {
    const of = run.byId.get(row[S_COMMIT]);
    return of[TWIN] ? 'duplicate' : of[METRICS] ? `${run.data.quality} ${number(of[METRICS][0])}` : of[ENDING];
  };
  const kept = rows.filter((row) => run.byId.has(row[S_COMMIT]));
  const list = pagedTable({
    caption: 'Answers to commits',
    columns: ['answer to', 'verdict', 'migration showed', 'notice', 'how sure this is'],
    numeric: [],
    size: 15,
    rows: kept,
    cells: (row) => [
      openButton(row[S_COMMIT], () => show(row)), verdict(row),
      row[S_MIGRATION] === null ? '-' : row[S_MIGRATION].length ? references(row[S_MIGRATION]) : 'nothing new',
      row[S_NOTICE].replaceAll('_', ' '), standing(row),
    ],
  });
  show(kept[0]);
  return make('div', {}, list.node, leftOut(run.data.left_out.answers, 'answer'), detail);
}
