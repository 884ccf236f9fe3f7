// Long lists, a page at a time, so that ten thousand rows cost no more than fifty.
const PAGE_ROWS = 50;

/** A table of many rows; `cells(row)` gives the children of each cell, `numeric` the columns on the right. */
function pagedTable({ caption, columns, numeric, rows, cells, sorts, size = PAGE_ROWS }) {
  let shown = rows;
  let first = 0;
  let order = null;
  const body = make('tbody', {});
  const said = make('p', { class: 'quiet', 'aria-live': 'polite' });
  const back = make('button', { type: 'button', on: { click: () => turn(first - size) } }, '← earlier');
  const on = make('button', { type: 'button', on: { click: () => turn(first + size) } }, 'later →');
  const heads = columns.map((name, place) => {
    if (!sorts || !sorts[place]) return make('th', { scope: 'col' }, name);
    return make('th', { scope: 'col', 'aria-sort': 'none' },
      make('button', { type: 'button', class: 'sort', on: { click: () => sort(place) } }, name));
  });

  function sort(place) {
    const key = sorts[place];
    order = order && order.place === place ? { place, way: -order.way } : { place, way: 1 };
    heads.forEach((head, at) => {
      if (sorts[at]) head.setAttribute('aria-sort', at !== place ? 'none' : order.way > 0 ? 'ascending' : 'descending');
    });
    shown = [...shown].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
      return (x < y ? -1 : x > y ? 1 : 0) * order.way;
    });
    turn(0);
  }

  function turn(to) {
    first = Math.max(0, Math.min(to, Math.floor(Math.max(0, shown.length - 1) / size) * size));
    const part = shown.slice(first, first + size);
    body.replaceChildren(...part.map((row) =>
      make('tr', {}, ...cells(row).map((cell, place) =>
        make('td', { class: numeric.includes(place) ? 'number' : null }, ...[].concat(cell))))));
    const range = part.length ? `${number(first + 1)} to ${number(first + part.length)} of ${number(shown.length)}` : 'none';
    said.textContent = shown.length === rows.length ? range : `${range} (${number(rows.length)} in all)`;
    back.disabled = first === 0;
    on.disabled = first + size >= shown.length;
  }

  turn(0);
  const table = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, ...heads)), body);
  const node = make('div', { class: 'list' },
    make('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': caption }, table),
    make('div', { class: 'pager' }, back, said, on));
  return {
    node,
    filter(wanted) {
      shown = rows.filter(wanted);
      if (order) { order.way = -order.way; sort(order.place); } else turn(0);
    },
    /** Turn to a row, if it is among those shown. */
    show(row) {
      const place = shown.indexOf(row);
      if (place >= 0) turn(Math.floor(place / size) * size);
    },
  };
}

function choice(label, options, onChange) {
  const select = make('select', { on: { change: () => onChange(select.value) } },
    ...options.map(([value, name]) => make('option', { value }, name)));
  return make('label', {}, `${label} `, select);
}

function leftOut(count, noun) {
  return count ? make('p', { class: 'remark' },
    `${counted(count, noun)} ${count === 1 ? 'is' : 'are'} left out: this page is full. The run's journal and \`evolvarium show\` have ${count === 1 ? 'it' : 'them'}.`) : null;
}
