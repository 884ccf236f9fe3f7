// Elements and numbers. Text of models and programs only ever becomes text nodes and attributes of ours.
const SVG = 'http://www.w3.org/2000/svg';

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'on') for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function number(value) {
  if (value === null || value === undefined) return '-';
  if (typeof value !== 'number') return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return (value + 0).toLocaleString('en-US');
  return String(Number(value.toPrecision(6)));
}

/** `1 line`, `2 lines`. */
function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function reference(id) {
  return make('button', { type: 'button', class: 'link', 'data-id': id }, id);
}

/** A list of references, separated. */
function references(ids) {
  return ids.flatMap((id, place) => (place ? [', ', reference(id)] : [reference(id)]));
}

/** Tabs above one panel; `parts` are {name, fill}, and fill(panel) writes one. */
function tabs(label, parts) {
  const panel = make('div', { role: 'tabpanel', tabindex: '0', class: 'tabpanel' });
  const buttons = parts.map((part, place) =>
    make('button', { type: 'button', role: 'tab', on: { click: () => choose(place) } }, part.name));
  async function choose(place, focus) {
    buttons.forEach((button, at) => {
      button.setAttribute('aria-selected', at === place ? 'true' : 'false');
      button.tabIndex = at === place ? 0 : -1;
    });
    panel.setAttribute('aria-label', parts[place].name);
    if (focus) buttons[place].focus();
    const fresh = make('div', {});
    await parts[place].fill(fresh);
    panel.replaceChildren(fresh);
  }
  const list = make('div', { role: 'tablist', 'aria-label': label, class: 'tabs' }, ...buttons);
  moveByArrows(list, buttons, (place) => choose(place, true));
  choose(0);
  return make('div', {}, list, panel);
}

/** Left and right, home and end move between buttons. */
function moveByArrows(list, buttons, go) {
  list.addEventListener('keydown', (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    go((to + buttons.length) % buttons.length);
  });
}
