// Puts it all together: every run of the page, and the tabs between them.
function begin(node) {
  const data = page.runs[Number(node.dataset.run)];
  const run = { node, data, byId: new Map(data.commits.map((row) => [row[ID], row])), answerOf: new Map(data.answers.map((row) => [row[S_COMMIT], row])) };
  const hook = (name) => node.querySelector(`[data-hook="${name}"]`);
  const fill = (name, content) => hook(name).replaceChildren(content);
  function choose(id, move) {
    const row = run.byId.get(id);
    if (!row) return;
    fill('candidate', candidateView(run, row));
    trace(run, id);
    if (!move) return;
    const head = hook('candidate').querySelector('h4');
    head.scrollIntoView({ block: 'start' });
    head.focus({ preventScroll: true });
  }
  if (data.commits.length) fill('candidates', candidateList(run));
  if (hook('analyses').childElementCount) fill('analyses', analysisList(run));
  if (hook('answers').childElementCount) fill('answers', answerList(run));
  makeMaps(run);
  for (const picture of node.querySelectorAll('svg.lineage, svg.curves')) {
    selectable(picture, [...picture.querySelectorAll('circle[data-id]')], (shape) => choose(shape.dataset.id, true));
  }
  node.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-id]');
    if (button) choose(button.dataset.id, true);
  });
  if (data.best) choose(data.best, false);
  return run;
}

function beginTabs() {
  const list = document.querySelector('.tabs.runs');
  if (!list) return;
  const buttons = [...list.querySelectorAll('button')];
  const go = (place, focus) => buttons.forEach((button, at) => {
    button.setAttribute('aria-selected', at === place ? 'true' : 'false');
    button.tabIndex = at === place ? 0 : -1;
    document.getElementById(button.getAttribute('aria-controls')).hidden = at !== place;
    if (at === place && focus) button.focus();
  });
  buttons.forEach((button, place) => button.addEventListener('click', () => go(place, false)));
  moveByArrows(list, buttons, (place) => go(place, true));
  list.hidden = false;
  go(0, false);
}

document.documentElement.classList.add('with-script');
document.querySelectorAll('.run').forEach(begin);
beginTabs();
document.documentElement.classList.add('ready');
