// A click on a heading sorts a table; dragging over a part of a large figure enlarges that part.
document.querySelectorAll('table.sortable').forEach(table => {
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = Number(text.replace(/[,%\s]/g, '').replace('\u2212', '-'));
    return text !== '' && !Number.isNaN(number) ? number : text;
  };
  table.querySelectorAll('th').forEach((head, at) => head.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') === 'ascending';
    table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const body = table.tBodies[0], sign = down ? -1 : 1;
    [...body.rows].sort((a, b) => {
      const x = value(a, at), y = value(b, at);
      const order = typeof x === typeof y ? (x > y) - (x < y) : typeof x === 'number' ? -1 : 1;
      return sign * order;
    }).forEach(row => body.appendChild(row));
  }));
});
document.querySelectorAll('figure[class] svg').forEach(svg => {
  const whole = svg.getAttribute('viewBox');
  const place = event => new DOMPoint(event.clientX, event.clientY)
    .matrixTransform(svg.getScreenCTM().inverse());
  let from = null;
  svg.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse') { from = place(event); event.preventDefault(); }
  });
  svg.addEventListener('pointerup', event => {
    if (!from) return;
    const to = place(event), [, , width, height] = whole.split(' ').map(Number);
    const part = Math.max(Math.abs(to.x - from.x) / width, Math.abs(to.y - from.y) / height);
    const x = (from.x + to.x - part * width) / 2, y = (from.y + to.y - part * height) / 2;
    if (part > .02) svg.setAttribute('viewBox', [x, y, part * width, part * height].join(' '));
    from = null;
  });
  svg.addEventListener('dblclick', () => svg.setAttribute('viewBox', whole));
});
