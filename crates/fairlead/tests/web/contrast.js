// Every text that can be seen, and every border of a field, whose contrast with what is behind it is less than WCAG's level AA asks
// for.
const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const known = new Map();
const pixel = (colour) => {
  if (!known.has(colour)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    known.set(colour, [red, green, blue, alpha / 255]);
  }
  return known.get(colour);
};
const over = (front, back) => front.slice(0, 3).map((part, at) => part * front[3] + back[at] * (1 - front[3]));
const behind = (element) => {
  const layers = [];
  for (let one = element; one; one = one.parentElement) {
    const layer = pixel(getComputedStyle(one).backgroundColor);
    layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
};
const light = (colour) => {
  const [red, green, blue] = colour.map((part) =>
    part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const wrong = [];
let seen = 0;
const check = (element, colour, text) => {
  const style = getComputedStyle(element);
  const back = behind(element);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  let opacity = 1;
  for (let one = element; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
  const [red, green, blue, alpha] = pixel(colour);
  const found = contrast(over([red, green, blue, alpha * opacity], back), back);
  seen += 1;
  if (found < (large ? 3 : 4.5)) wrong.push(`${found.toFixed(2)} ${element.tagName}.${element.className}: ${text}`);
};
while (texts.nextNode()) {
  const text = texts.currentNode.textContent.trim();
  const element = texts.currentNode.parentElement;
  if (text === '' || !element.checkVisibility({ visibilityProperty: true }) || element.closest('noscript')) continue;
  check(element, getComputedStyle(element).color, text.slice(0, 60));
}
for (const input of document.querySelectorAll('input[placeholder]')) {
  if (input.value === '') check(input, getComputedStyle(input, '::placeholder').color, input.placeholder);
}
for (const field of document.querySelectorAll('input[type=text], input[type=search], select')) {
  if (!field.checkVisibility({ visibilityProperty: true })) continue;
  const back = behind(field.parentElement);
  const found = contrast(over(pixel(getComputedStyle(field).borderTopColor), back), back);
  seen += 1;
  if (found < 3) wrong.push(`${found.toFixed(2)} border of ${field.tagName}.${field.className} ${field.id}`);
}
return { seen, wrong };
