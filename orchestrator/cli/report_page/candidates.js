// Candidates: the list of all of them, and one of them with its program, its changes and what its agent was told.
const [ID, ISLAND, NUMBER, METRICS, ENDING, FAILURE, TWIN, PARENTS, MORE_PARENTS, WORDS, ALL_WORDS, FILES, ANSWER] =
  Array(13).keys();

function candidateList(run) {
  const { data } = run;
  const unit = data.unit ? ` (${data.unit})` : '';
  const quality = (row) => (row[METRICS] ? row[METRICS][0] : null);
  const wanted = { island: '', ending: '', words: '' };
  const list = pagedTable({
    caption: 'All commits and the initial program',
    columns: ['candidate', `${data.quality}${unit}`, 'ending', 'made from', 'its author\u2019s words'],
    numeric: [1],
    rows: data.commits,
    sorts: [(row) => row[NUMBER] * 1000 + row[ISLAND], quality, (row) => row[ENDING], null, null],
    cells: (row) => [
      reference(row[ID]),
      number(quality(row)),
      row[TWIN] ? ['duplicate of ', reference(row[TWIN])] : row[FAILURE] || row[ENDING],
      references(row[PARENTS].slice(0, 4)),
      row[WORDS],
    ],
  });
  const islands = [...new Set(data.commits.map((row) => row[ISLAND]))].filter((one) => one >= 0).sort((a, b) => a - b);
  const endings = [...new Set(data.commits.map((row) => row[ENDING]))].sort();
  const filter = () => list.filter((row) =>
    (wanted.island === '' || row[ISLAND] === Number(wanted.island)) &&
    (wanted.ending === '' || row[ENDING] === wanted.ending) &&
    (wanted.words === '' || `${row[ID]} ${row[WORDS]}`.toLowerCase().includes(wanted.words)));
  const input = make('input', { type: 'search', placeholder: 'id or words', on: { input: () => {
    wanted.words = input.value.toLowerCase();
    filter();
  } } });
  const controls = make('div', { class: 'controls' },
    choice('Island', [['', 'all'], ...islands.map((one) => [one, String(one)])], (value) => { wanted.island = value; filter(); }),
    choice('Ending', [['', 'all'], ...endings.map((one) => [one, one])], (value) => { wanted.ending = value; filter(); }),
    make('label', {}, 'Search ', input));
  return make('div', {}, controls, list.node, leftOut(data.left_out.commits, 'commit'));
}

function programOf(row) {
  return Promise.all(row[FILES].map(async ([path, text]) => [path, await textOf(text)]));
}

async function showProgram(row, panel) {
  for (const [path, text] of await programOf(row)) {
    panel.append(make('p', { class: 'path' }, path), make('pre', { tabindex: '0' }, text));
  }
}

async function showChanges(row, other, panel) {
  const [before, after] = await Promise.all([programOf(other), programOf(row)]);
  const paths = [...new Set([...before, ...after].map(([path]) => path))].sort();
  const at = (files, path) => (files.find(([name]) => name === path) || [path, ''])[1];
  panel.append(make('p', {}, 'From ', reference(other[ID]), ` to ${row[ID]}`));
  for (const path of paths) {
    panel.append(make('p', { class: 'path' }, path), shownDifference(at(before, path), at(after, path)));
  }
}

function metricsOf(data, row) {
  if (!row[METRICS]) return make('p', { class: 'remark' }, row[FAILURE] || row[ENDING]);
  const items = data.metrics.map((name, place) =>
    make('div', {}, make('dt', {}, name), make('dd', {}, number(row[METRICS][place]))));
  return make('dl', { class: 'metrics' }, ...items);
}

/** One candidate; its first tab shows the changes from what it was made from. */
function candidateView(run, row) {
  const { data } = run;
  const words = make('p', { class: 'words' }, row[WORDS]);
  if (row[ALL_WORDS] >= 0) textOf(row[ALL_WORDS]).then((all) => { words.textContent = all; });
  const others = [...row[PARENTS], 'initial', data.best]
    .filter((id, place, all) => id && id !== row[ID] && all.indexOf(id) === place && run.byId.has(id));
  const parts = others.map((id) => ({
    name: `Changes from ${id === data.best ? 'the best' : id}`,
    fill: (panel) => showChanges(row, run.byId.get(id), panel),
  }));
  parts.push({ name: 'Program', fill: (panel) => showProgram(row, panel) });
  if (run.answerOf.has(row[ID])) parts.push({ name: 'What its agent was told', fill: (panel) => showAnswer(run, row[ID], panel) });
  const from = row[PARENTS].length
    ? make('p', {}, 'Made from ', ...references(row[PARENTS]), row[MORE_PARENTS] ? ` and ${number(row[MORE_PARENTS])} more` : '')
    : null;
  return make('div', { class: 'candidate' },
    make('h4', { tabindex: '-1' }, row[ID], row[ID] === data.best ? make('span', { class: 'badge' }, 'best') : null),
    words, metricsOf(data, row), from,
    row[TWIN] ? make('p', {}, 'The same files as ', reference(row[TWIN]), ', whose verdict it has.') : null,
    tabs(`Candidate ${row[ID]}`, parts));
}
