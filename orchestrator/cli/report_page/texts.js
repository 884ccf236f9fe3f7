// The data of the page, and its long texts, which are unpacked when they are looked at.
const page = JSON.parse(document.getElementById('data').textContent);
const unpacked = new Map();

function blockOf(number) {
  const starts = page.texts.starts;
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}

async function unpack(block) {
  const bytes = Uint8Array.from(atob(page.texts.blocks[block]), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

/** A text by its number; -1: there is none. */
async function textOf(number) {
  if (number < 0) return '';
  const block = blockOf(number);
  if (!unpacked.has(block)) unpacked.set(block, unpack(block));
  return (await unpacked.get(block))[number - page.texts.starts[block]];
}
