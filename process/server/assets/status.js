// Keeps the page up to date from api/status. The template says by data attributes what goes where:
//
//   data-text="path" data-as="format"   the element's text
//   data-value="path"                   the value of a hidden field
//   data-is="path"                      its data-state, for the colour
//   data-hide="path"                    hidden while there is nothing; with data-unless also at that value
//   data-dim="path"                     class zero while it is 0
//   data-chart="path"                   the paths of an svg
//   data-with="path"                    the paths below begin here
//   data-list="path"                    children with data-item show one element each; a <template> makes more
//
// The formats are those of format.go.
'use strict';

(() => {
  const none = '–';
  const nothing = (v) => v === null || v === undefined;
  const fixed = (v, digits) => (Math.floor(v * 10 ** digits + 0.5) / 10 ** digits).toFixed(digits);
  const count = (n) => (nothing(n) ? none : String(Math.trunc(n)).replace(/\B(?=(\d{3})+$)/g, ','));

  const rate = (v) => {
    if (nothing(v)) return none;
    if (v === 0) return '0';
    if (v < 0.05) return '<0.1';
    return v < 9.95 ? fixed(v, 1) : count(Math.floor(v + 0.5));
  };

  const seconds = (v) => {
    if (nothing(v)) return none;
    if (v < 0.00995) return fixed(v * 1000, 1) + ' ms';
    if (v < 0.9995) return fixed(v * 1000, 0) + ' ms';
    return (v < 99.95 ? fixed(v, 1) : count(v)) + ' s';
  };

  const bytes = (v) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (v >= 1024 && unit < units.length - 1) {
      v /= 1024;
      unit++;
    }
    return (unit === 0 ? count(v) : fixed(v, 1)) + ' ' + units[unit];
  };

  let now = 0; // the server's clock

  const lasting = (v) => {
    if (nothing(v)) return none;
    const s = Math.max(0, Math.floor(v));
    if (s < 120) return s + ' s';
    if (s < 2 * 3600) return Math.floor(s / 60) + ' min';
    if (s < 2 * 86400) return Math.floor(s / 3600) + ' h';
    return Math.floor(s / 86400) + ' d';
  };

  const age = (v) => (!nothing(v) && v < 1 ? '<1 s' : lasting(v));

  const ago = (at) => (at ? lasting((now - Date.parse(at)) / 1000) : none);

  const share = (v) => {
    if (nothing(v)) return none;
    if (v === 0) return '0 %';
    if (v < 0.0005) return '<0.1 %';
    return fixed(v * 100, v < 0.0995 ? 1 : 0) + ' %';
  };

  const formats = {
    count, rate, seconds, ago, age, share,
    bytes: (v) => (nothing(v) ? none : bytes(v)),
    done: (v) => (v === 0 ? none : count(v)),
    fact: (f) => (f.unit === 'bytes' ? bytes(f.value) : count(f.value)),
    list: (v) => (v || []).join(', '),
    time: (at) => (at ? at.slice(0, 19).replace('T', ' ') + 'Z' : none),
    words: (v) => v.replaceAll('_', ' '),
    plain: (v) => (nothing(v) ? '' : String(v)),
  };

  const width = 150;
  const height = 24;

  const line = (values, top) => values.map((v, i) =>
    (i === 0 ? 'M' : 'L') + (width - values.length + i) + ' ' + fixed(height - 1 - ((height - 2) * v) / top, 1)).join(' ');

  const chart = (svg, values) => {
    const top = Math.max(0, ...values);
    const path = top > 0 ? line(values, top) : '';
    const [area, stroke] = svg.querySelectorAll('path');
    stroke.setAttribute('d', path);
    area.setAttribute('d', path && `${path} L${width - 1} ${height} L${width - values.length} ${height} Z`);
    text(svg.querySelector('title'), 'Last 5 minutes, at most ' + count(top));
  };

  const at = (item, path) => (path === '' ? item : path.split('.').reduce((v, key) => (nothing(v) ? v : v[key]), item));

  // A text that stays is not written again: it would take a selection away.
  const text = (element, value) => {
    if (element.textContent !== value) element.textContent = value;
  };

  const empty = (v) => nothing(v) || v === '' || v === false || v.length === 0;

  const bind = (element, item) => {
    const d = element.dataset;
    if (d.text !== undefined) text(element, formats[d.as || 'plain'](at(item, d.text)));
    if (d.value !== undefined) element.value = at(item, d.value);
    if (d.is !== undefined) d.state = at(item, d.is);
    if (d.hide !== undefined) {
      const v = at(item, d.hide);
      element.hidden = empty(v) || String(v) === d.unless;
    }
    if (d.dim !== undefined) element.classList.toggle('zero', at(item, d.dim) === 0);
    if (d.chart !== undefined) chart(element, at(item, d.chart));
  };

  const fill = (element, item) => {
    for (const child of element.children) {
      if (child.localName === 'template') continue;
      const inner = child.dataset.with === undefined ? item : at(item, child.dataset.with);
      bind(child, inner);
      if (child.dataset.list !== undefined) list(child, at(inner, child.dataset.list));
      else fill(child, inner);
    }
  };

  const list = (container, items) => {
    const rows = [...container.children].filter((c) => c.dataset.item !== undefined);
    const template = container.querySelector(':scope > template');
    for (const surplus of rows.splice(items.length)) surplus.remove();
    while (template && rows.length < items.length) {
      rows.push(template.content.firstElementChild.cloneNode(true));
      container.append(rows.at(-1));
    }
    rows.forEach((row, i) => {
      bind(row, items[i]);
      fill(row, items[i]);
    });
  };

  const stale = document.getElementById('stale');
  const every = Number(document.body.dataset.every);

  const show = (status) => {
    now = Date.parse(status.time);
    status.quiet = status.events.length === 0;
    status.troubles = status.checks.some((c) => !c.ok);
    status.undropped = status.dropped_copies.length === 0;
    for (const p of status.pipelines) p.idle = p.partitions.length === 0;
    for (const d of status.dropped_copies) {
      d.content = d.differs ? `other: ${d.differs}` : d.conflict ? 'other' : 'same';
      d.alike = d.conflict ? 'other' : 'same';
      d.hex = d.id_is_hex ? '1' : '';
    }
    for (const e of status.events) e.where = e.lane === '' ? e.topic : `${e.topic} ${e.lane.includes(',') ? 'lanes' : 'lane'} ${e.lane}`.trim();
    fill(document.body, status);
    document.title = (status.state === 'ready' ? '' : formats.words(status.state) + ': ') + 'kdedup ' + status.process.instance;
  };

  // The filter keeps the pipelines in whose line, or group, all of its words stand.
  const filter = document.getElementById('filter');

  const narrow = () => {
    if (!filter) return;
    const words = filter.value.toLowerCase().split(/\s+/);
    const all = [...document.querySelectorAll('.pipeline')];
    for (const p of all) {
      const [state, topics] = p.querySelectorAll('summary > .state, summary > b');
      const shown = `${state.textContent} ${topics.textContent} ${p.dataset.words}`.toLowerCase();
      p.hidden = !words.every((word) => shown.includes(word));
    }
    text(document.getElementById('filtered'), filter.value.trim() === '' ? '' : `${all.filter((p) => !p.hidden).length} shown`);
  };

  if (filter) {
    filter.parentElement.hidden = false;
    filter.addEventListener('input', narrow);
  }

  // An address with #pipeline-INPUT opens the details of that pipeline, for links from alerts and chats.
  const openNamed = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!named || named.localName !== 'details') return;
    named.open = true;
    named.scrollIntoView();
  };

  openNamed();
  window.addEventListener('hashchange', openNamed);

  let answered = document.querySelector('.clock span').textContent;

  const ask = async (path, options) => {
    try {
      return await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(20000), ...options });
    } catch {
      throw new Error('no connection');
    }
  };

  const read = async () => {
    const answer = await ask('api/status');
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer.json();
  };

  const poll = async () => {
    let status;
    try {
      status = await read();
    } catch (error) {
      text(stale, `These numbers are from ${answered}: ${error.message}. Trying again.`);
    }
    stale.hidden = status !== undefined;
    if (document.visibilityState === 'visible') timer = setTimeout(poll, every);
    if (!status) return;
    const page = document.body.dataset;
    if (status.process.started !== page.started || status.configured !== page.configured) location.replace('./'); // other pipelines, perhaps
    show(status);
    narrow();
    answered = formats.time(status.time);
  };

  let timer = setTimeout(poll, every);
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.visibilityState === 'visible') poll();
  });

  // The look-up works without this too; with it the page stays where it is.
  const form = document.getElementById('ask');

  const lookUp = async (question) => {
    const here = document.getElementById('answer');
    try {
      const answer = await ask('lookup', { method: 'POST', body: new URLSearchParams(question) });
      const found = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('answer');
      if (!found) throw new Error(`the server answers ${answer.status}`);
      here.replaceChildren(...found.children);
    } catch (error) {
      const p = document.createElement('p');
      p.className = 'failure';
      p.textContent = error.message;
      here.replaceChildren(p);
    }
  };

  document.addEventListener('submit', async (event) => {
    event.preventDefault();
    const question = new FormData(event.target);
    const button = form.querySelector('button');
    button.disabled = true;
    if (event.target !== form) { // of a dropped copy
      if (form.elements.topic) form.elements.topic.value = question.get('topic');
      form.elements.id.value = question.get('id');
      form.elements.hex.checked = question.get('hex') !== '';
      form.scrollIntoView();
    }
    await lookUp(question);
    button.disabled = false;
  });
})();
