// Pictures that are there without a script: this makes their shapes selectable, with a keyboard as well.

/** One stop of the tab key for all shapes; arrows go to the nearest shape in their direction. */
function selectable(picture, shapes, onSelect) {
  if (!shapes.length) return;
  const middle = (shape) => {
    const box = shape.getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const stop = (shape) => shapes.forEach((one) => one.setAttribute('tabindex', one === shape ? '0' : '-1'));
  shapes.forEach((shape) => {
    shape.setAttribute('role', 'button');
    if (!shape.hasAttribute('aria-label')) shape.setAttribute('aria-label', shape.textContent);
  });
  stop(shapes[0]);
  picture.addEventListener('click', (event) => {
    const shape = event.target.closest('[data-id]');
    if (shape) { stop(shape); onSelect(shape); }
  });
  picture.addEventListener('keydown', (event) => {
    const shape = event.target.closest('[data-id]');
    if (!shape) return;
    if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); onSelect(shape); return; }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = nearest(shape, shapes, middle, way);
    if (next) { stop(next); next.focus(); }
  });
}

function nearest(from, shapes, middle, [dx, dy]) {
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const shape of shapes) {
    const [toX, toY] = middle(shape);
    const ahead = (toX - x) * dx + (toY - y) * dy;
    const aside = Math.abs((toX - x) * dy) + Math.abs((toY - y) * dx);
    if (shape !== from && ahead > 0.01 && ahead + 2 * aside < least) { least = ahead + 2 * aside; best = shape; }
  }
  return best;
}

function cellCard(run, shape, picture) {
  const row = run.byId.get(shape.dataset.id);
  if (!row) return make('p', { class: 'remark' }, `${shape.dataset.id} is not among the candidates that this page holds.`);
  return make('div', { class: 'chosen-cell' },
    make('p', {}, make('b', {}, `Island ${picture.dataset.island}, cell ${Number(shape.dataset.column) + 1} × ${Number(shape.dataset.row) + 1}: `),
      reference(row[ID])),
    make('p', { class: 'words' }, row[WORDS]), metricsOf(run.data, row));
}

function makeMaps(run) {
  const hook = run.node.querySelector('[data-hook="cell"]');
  hook.setAttribute('aria-live', 'polite');
  hook.append(make('p', { class: 'quiet' }, 'Choose a cell to see its elite: with the pointer, or with tab, arrows and enter.'));
  for (const picture of run.node.querySelectorAll('svg.map')) {
    const shapes = [...picture.querySelectorAll('.cell')];
    selectable(picture, shapes, (shape) => {
      run.node.querySelectorAll('.cell.selected').forEach((one) => one.classList.remove('selected'));
      shape.classList.add('selected');
      hook.replaceChildren(cellCard(run, shape, picture));
    });
  }
}

function ancestors(run, id) {
  const found = new Set([id]);
  const waiting = [id];
  while (waiting.length) {
    const row = run.byId.get(waiting.pop());
    for (const parent of row ? row[PARENTS] : []) {
      if (!found.has(parent)) { found.add(parent); waiting.push(parent); }
    }
  }
  return found;
}

/** Show in the picture of the lineage what led to a candidate. */
function trace(run, id) {
  const picture = run.node.querySelector('svg.lineage');
  if (!picture) return;
  const found = ancestors(run, id);
  const places = new Map();
  for (const dot of picture.querySelectorAll('circle[data-id]')) {
    dot.classList.toggle('traced', found.has(dot.dataset.id));
    dot.classList.toggle('selected', dot.dataset.id === id);
    places.set(dot.dataset.id, [dot.cx.baseVal.value, dot.cy.baseVal.value]);
  }
  const steps = [];
  for (const one of found) {
    for (const parent of (run.byId.get(one) || [])[PARENTS] || []) {
      if (!places.has(one) || !places.has(parent)) continue;
      const [[x, y], [toX, toY]] = [places.get(parent), places.get(one)];
      steps.push(`M${x} ${y}C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}`);
    }
  }
  let path = picture.querySelector('path.traced');
  if (!path) {
    path = document.createElementNS(SVG, 'path');
    path.setAttribute('class', 'edge traced');
    picture.insertBefore(path, picture.querySelector('circle'));
  }
  path.setAttribute('d', steps.slice(0, 3000).join(''));
  picture.classList.toggle('tracing', id !== run.data.best);
}
