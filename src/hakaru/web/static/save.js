// The figure as a file, made here.
"use strict";
{
  const { charts, drawable, notesOf } = hakaru;

  function save(button) {
    const holder = button.closest("[data-analysis]");
    const element = holder.querySelector(".chart");
    const found = charts.get(element);
    if (!found) return;
    const name = `${element.dataset.id}.${button.dataset.save}`;
    if (button.dataset.save === "png") savePng(element, found, name);
    else saveSvg(element, found.drawing, name);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-save]");
    if (button) save(button);
  });

  function savePng(element, { chart, drawing }, name) {
    const scale = 2;
    const page = pageOf(element, drawing, chart.getWidth(), chart.getHeight());
    const canvas = document.createElement("canvas");
    canvas.width = page.width * scale;
    canvas.height = page.height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = drawing.option.backgroundColor;
    context.fillRect(0, 0, page.width, page.height);
    context.drawImage(chart.renderToCanvas({ pixelRatio: scale }), EDGE, page.top, chart.getWidth(), chart.getHeight());
    for (const { text, y, font, colour } of page.lines) {
      context.font = font;
      context.fillStyle = colour;
      context.fillText(text, EDGE, y);
    }
    canvas.toBlob((blob) => give(blob, name), "image/png");
  }

  function saveSvg(element, drawing, name) {
    const width = Math.max(640, element.clientWidth);
    const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height: drawing.height });
    drawn.setOption(drawable(drawing.option));
    const page = pageOf(element, drawing, width, drawing.height);
    const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
    const texts = page.lines.map(({ text, y, font, colour }) => {
      const [weight, size, family] = font.match(/^(\d+) (\d+)px (.*)$/).slice(1);
      return `<text x="${EDGE}" y="${y}" font-weight="${weight}" font-size="${size}" font-family="${escaped(family)}" fill="${colour}">${escaped(text)}</text>`;
    });
    const inner = drawn.renderToSVGString().replace("<svg ", `<svg x="${EDGE}" y="${page.top}" `);
    drawn.dispose();
    const whole = `<svg xmlns="http://www.w3.org/2000/svg" width="${page.width}" height="${page.height}" viewBox="0 0 ${page.width} ${page.height}">`
      + `<rect width="100%" height="100%" fill="${drawing.option.backgroundColor}"/>${texts.join("")}${inner}</svg>`;
    // XML has no place for most control characters, which a name may hold
    const wellFormed = whole.replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\ufffd");
    give(new Blob([wellFormed], { type: "image/svg+xml" }), name);
  }

  // A figure that leaves its page takes along what it is of: title, cluster and filters above, the notes below.
  const EDGE = 16;
  function pageOf(element, drawing, width, height) {
    const { fontFamily, color } = drawing.option.textStyle;
    const font = (weight, size) => `${weight} ${size}px ${fontFamily}`;
    const lines = [];
    let y = EDGE;
    const write = (words, weight, size) => {
      for (const text of broken(words, width, font(weight, size))) {
        lines.push({ text, y: (y += Math.round(size * 1.4)), font: font(weight, size), colour: color });
      }
    };
    write(drawing.title, 600, 18);
    write(selectionOf(element), 400, 13);
    const top = y + EDGE;
    y = top + height;
    for (const note of notesOf(drawing)) write(note, 400, 12);
    return { width: width + 2 * EDGE, height: y + EDGE, top, lines };
  }

  function selectionOf(element) {
    const pairs = [...new URL(element.dataset.figure, location.href).searchParams];
    const clusters = pairs.filter(([name]) => name === "cluster").map(([, value]) => value).join(", ");
    const rest = pairs.filter(([name]) => name !== "cluster").map(([name, value]) => `${name.replace("param.", "")} ${value}`);
    return [clusters, ...rest].filter(Boolean).join(" · ");
  }

  const pen = document.createElement("canvas").getContext("2d");
  function broken(text, width, font) {
    pen.font = font;
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (lines.at(-1) && pen.measureText(longer).width > width) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines;
  }

  function give(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}
