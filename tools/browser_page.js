// What a reader sees of the page at the present width and colours: run in the page by tools/browser_check.py.
(() => {
  const name = (element) => {
    const own = (one) => one.tagName.toLowerCase() + (one.id ? "#" + one.id : [...one.classList].map((c) => "." + c).join(""));
    const text = (element.innerText || element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `${element.parentElement ? own(element.parentElement) + " > " : ""}${own(element)} "${text}"`;
  };
  const visible = (element) =>
    element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && element.getClientRects().length > 0;
  const scrolls = (element) => {
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(one).overflowX)) return true;
    }
    return false;
  };
  // "rgb(1, 2, 3)", "rgba(1, 2, 3, 0.5)" and "color(srgb 0.1 0.2 0.3 / 0.5)" to red, green, blue of 0 to 255, and alpha.
  const channels = (color) => {
    const numbers = color.replace("srgb", "").match(/[\d.e-]+/g).map(Number);
    const scale = color.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((part) => part * scale), numbers.length > 3 ? numbers[3] : 1];
  };
  const over = (front, back) => front.slice(0, 3).map((part, i) => part * front[3] + back[i] * (1 - front[3]));
  const background = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.backgroundImage !== "none") return null;
      const color = channels(style.backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255]);
  };

  const width = document.documentElement.clientWidth;
  const overflow = [];
  if (document.documentElement.scrollWidth > width) overflow.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const article = document.querySelector("article") || document.body;
  for (const element of article.querySelectorAll("*")) {
    const right = element.getBoundingClientRect().right;
    if (right > width + 1 && visible(element) && !scrolls(element) && !element.closest("svg svg, mjx-assistive-mml")) {
      overflow.push(`${name(element)} ends at ${Math.round(right)}`);
    }
  }

  const images = [...document.images]
    .filter((image) => image.getAttribute("src") && (image.complete ? image.naturalWidth === 0 : image.loading !== "lazy"))
    .map((image) => image.getAttribute("src"));

  const pairs = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const key = [style.color, style.fontWeight, size, element.className, element.parentElement.className].join("|");
    if (pairs.has(key) || element.closest("svg, script, style, noscript, [aria-hidden=true]") || !visible(element)) continue;
    const back = background(element);
    if (back === null) continue;
    const is_large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    pairs.set(key, { front: over(channels(style.color), back), back, is_large, name: name(element) });
  }
  const words = article.textContent.split(/\s+/).filter(Boolean).length;
  return { words, overflow: overflow.slice(0, 3), images, pairs: [...pairs.values()] };
})();
