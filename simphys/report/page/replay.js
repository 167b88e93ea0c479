// The replay of a motion on a canvas: plays, has a slider, and turns where the motion is in space.
// The data is made by replay.py: arrays along time are integers, as differences along time, deflated, in base64.
document.querySelectorAll(".replay").forEach((home) => {
  "use strict";
  const source = home.querySelector(".replay-data");
  const canvas = home.querySelector("canvas"), paper = canvas.getContext("2d");
  const play = home.querySelector(".play"), slider = home.querySelector(".time"), label = home.querySelector(".now");
  const pace = home.querySelector(".pace"), tint = home.querySelector(".tint"), again = home.querySelector(".reset");
  const bar = home.querySelector(".bar"), notice = home.querySelector(".notice");
  const replay = JSON.parse(source.textContent);
  const frames = replay.time.length, solid = replay.dim === 3;
  const camera = { turn: 0.52, rise: 0.35, zoom: 1, x: 0, y: 0 };
  let frame = 0, playing = false, before = 0, shade = 0, ink = {}, ready = false;
  const length = Math.min(12, Math.max(3, replay.time[frames - 1] - replay.time[0]));  // seconds at normal pace

  // ---- data ----
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  async function inflate(text) {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  async function unpack(packed) {
    const raw = await inflate(packed.data), count = packed.shape.reduce((a, b) => a * b, 1), row = count / packed.shape[0];
    const whole = packed.bits === 16 ? new Uint16Array(count) : new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      whole[i] = raw[i] + (packed.bits === 16 ? raw[i + count] << 8 : 0) + (i < row ? 0 : whole[i - row]);
    }
    if (packed.bits === 8) return { whole, row };
    const last = packed.shape[packed.shape.length - 1], values = new Float32Array(count);
    const at = (limit, k) => (Array.isArray(limit) ? limit[k % last] : limit);
    for (let i = 0; i < count; i++) {
      const low = at(packed.low, i), high = at(packed.high, i);
      values[i] = low + (whole[i] / 65535) * (high - low);
    }
    return { values, whole, row };
  }
  async function load() {
    replay.tables = {};
    for (const [name, text] of Object.entries(replay.ramps)) replay.tables[name] = await inflate(text);
    for (const layer of replay.layers) {
      for (const name of ["place", "turn", "pairs", "shown"]) if (layer[name]) layer[name] = await unpack(layer[name]);
      if (layer.values) layer.values = await unpack(layer.values);
      for (const colour of layer.colours || []) if (colour.values) colour.values = await unpack(colour.values);
    }
  }

  // ---- view ----
  const rotate = (p) => (replay.turn ? replay.turn.map((row) => row.reduce((sum, r, k) => sum + r * p[k], 0)) : p);
  const corners = [];
  for (let k = 0; k < 1 << replay.dim; k++) {
    corners.push(rotate(replay.low.map((low, axis) => ((k >> axis) & 1 ? replay.high[axis] : low))));
  }
  const middle = replay.low.map((_, axis) => {
    const seen = corners.map((corner) => corner[axis]);
    return (Math.min(...seen) + Math.max(...seen)) / 2;
  });
  function project(p) {  // to [across, up, away], before scaling
    const [x, y, z] = rotate(p).map((value, axis) => value - middle[axis]);
    if (!solid) return [x, y, 0];
    const across = Math.cos(camera.turn) * x + Math.sin(camera.turn) * y;
    const deep = Math.cos(camera.turn) * y - Math.sin(camera.turn) * x;
    return [across, Math.cos(camera.rise) * z + Math.sin(camera.rise) * deep, Math.cos(camera.rise) * deep - Math.sin(camera.rise) * z];
  }
  let scale = [1, 1], centre = [0, 0], width = 0, height = 0, margins = [18, 18, 18, 18];
  function fit() {
    const dots = window.devicePixelRatio || 1;
    width = home.clientWidth;
    const spans = [0, 1].map((axis) => {
      const seen = corners.map((corner) => corner[axis]);
      return Math.max(...seen) - Math.min(...seen) || 1e-9;
    });
    margins = replay.axes ? [14, 16, 46, 64] : [16, 16, 30, 16];  // top, right, bottom, left
    const room = width - margins[1] - margins[3], picture = current("picture");
    const free = replay.axes && !picture;  // axes of different units
    height = solid ? Math.min(520, 0.62 * width) : free ? Math.min(380, 0.5 * width)
      : Math.min(520, Math.max(170, (room * spans[1]) / spans[0] + margins[0] + margins[2]));
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    paper.setTransform(dots, 0, 0, dots, 0, 0);
    const tall = height - margins[0] - margins[2];
    if (solid) {
      const reach = Math.hypot(...corners[0].map((value, axis) => value - middle[axis])) || 1;
      const one = Math.min(room / (1.7 * reach), tall / (1.35 * reach));
      scale = [one, one];
    } else if (free) scale = [room / spans[0], tall / spans[1]];
    else scale = [0, 1].fill(Math.min(room / spans[0], tall / spans[1]));
    centre = [margins[3] + room / 2, margins[0] + tall / 2];
  }
  const across = (value) => centre[0] + camera.x + value * scale[0] * camera.zoom;
  const up = (value) => centre[1] + camera.y - value * scale[1] * camera.zoom;
  const spot = (p) => { const [a, b, c] = project(p); return [across(a), up(b), c]; };
  const layerOf = (kind, name) => replay.layers.find((layer) => layer.kind === kind && (!name || layer.name === name));
  function current(kind) {
    if (kind !== "picture") return layerOf(kind);
    const pictures = replay.layers.filter((layer) => layer.kind === "picture");
    return pictures[Math.min(shade, pictures.length - 1)];
  }
  const tints = () => ["points", "lines"].flatMap((kind) => (layerOf(kind) || {}).colours || []);  // of bodies and springs
  function chosenOf(layer) {
    const chosen = tints()[Math.min(shade, tints().length - 1)];
    return (layer.colours || []).includes(chosen) ? chosen : undefined;
  }
  const point = (place, at, k) => {
    const first = at * place.row + k * replay.dim;
    return Array.from(place.values.subarray(first, first + replay.dim));
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const inks = () => {
    for (const name of ["ink", "soft", "line", "ground", "table", "edge", "card"]) ink[name] = css(`--${name}`);
  };
  const ramp = (name, value) => {
    const table = replay.tables[name], k = 3 * Math.max(0, Math.min(255, value));
    return `rgb(${table[k]},${table[k + 1]},${table[k + 2]})`;
  };
  const bodyColour = (number) => (number < 0 ? ink.edge : replay.palette[number % replay.palette.length]);

  // ---- layers ----
  const draw = {
    goals(layer) {  // places to reach
      for (const each of layer.points) {
        const [x, y] = spot(each.place);
        paper.beginPath();
        paper.arc(x, y, each.radius ? each.radius * scale[0] * camera.zoom : 8, 0, 7);
        if (each.radius) { paper.fillStyle = "#1a1a1a"; paper.fill(); }
        else { paper.strokeStyle = ink.ink; paper.lineWidth = 1.5; paper.setLineDash([4, 3]); paper.stroke(); paper.setLineDash([]); }
      }
    },
    flat(layer) {
      const ends = layer.points.map(spot);
      trace(ends);
      paper.fillStyle = layer.look === "table" ? ink.table : ink.ground;
      paper.fill();
      if (solid) {  // lines that show how it lies
        const [a, b, c, d] = layer.points, mix = (p, q, part) => p.map((value, k) => value + part * (q[k] - value));
        paper.strokeStyle = ink.line;
        paper.lineWidth = 1;
        for (let k = 0; k <= 12; k++) {
          for (const line of [[mix(a, b, k / 12), mix(d, c, k / 12)], [mix(a, d, k / 12), mix(b, c, k / 12)]]) { trace(line.map(spot), false); paper.stroke(); }
        }
      }
      if (layer.look === "table") { paper.lineWidth = 3; paper.strokeStyle = "#3C733F"; paper.stroke(); }
    },
    box(layer) {
      paper.strokeStyle = ink.edge;
      paper.lineWidth = 1;
      for (let k = 0; k < 1 << replay.dim; k++) {
        for (let axis = 0; axis < replay.dim; axis++) {
          if ((k >> axis) & 1) continue;
          const end = (mask) => spot(layer.points[0].map((_, j) => layer.points[(mask >> j) & 1][j]));
          trace([end(k), end(k | (1 << axis))], false);
          paper.stroke();
        }
      }
    },
    trail(layer) {
      const many = layer.place.row / replay.dim;
      if (many > 60) return;
      paper.lineWidth = 1;
      paper.globalAlpha = 0.55;
      for (let k = 0; k < many; k++) {
        paper.strokeStyle = many > 1 ? bodyColour(k) : replay.palette[1];
        paper.beginPath();
        for (let at = 0; at <= frame; at++) {
          const [x, y] = spot(point(layer.place, at, k));
          if (at) paper.lineTo(x, y); else paper.moveTo(x, y);
        }
        paper.stroke();
      }
      paper.globalAlpha = 1;
    },
    outline(layer) {  // of an obstacle
      for (const polygon of layer.polygons) {
        trace(polygon.map(spot));
        paper.fillStyle = ink.edge;
        paper.fill();
        paper.strokeStyle = ink.ink;
        paper.lineWidth = 1.2;
        paper.stroke();
      }
    },
    lines(layer) {
      const place = layerOf("points", layer.of).place, pairs = layer.pairs.whole;
      paper.strokeStyle = layer.thick ? ink.ink : ink.soft;
      paper.lineWidth = layer.thick ? 3 : pairs.length > 4000 ? 0.4 : 1.2;
      paper.globalAlpha = layer.thick ? 1 : pairs.length > 4000 ? 0.35 : 0.75;
      const line = (k) => {
        const from = spot(point(place, frame, pairs[2 * k])), to = spot(point(place, frame, pairs[2 * k + 1]));
        paper.moveTo(from[0], from[1]);
        paper.lineTo(to[0], to[1]);
      };
      const many = pairs.length / 2, tinted = chosenOf(layer), groups = [];
      for (let k = 0; k < many; k++) {  // those of one colour are one stroke
        const colour = tinted ? tinted.values.whole[frame * tinted.values.row + k] & 0xF8 : 0;
        (groups[colour] = groups[colour] || []).push(k);
      }
      if (tinted) { paper.globalAlpha = 1; paper.lineWidth = pairs.length > 4000 ? 0.8 : 2.5; }
      groups.forEach((members, colour) => {
        if (tinted) paper.strokeStyle = ramp(tinted.ramp, colour);
        paper.beginPath();
        members.forEach(line);
        paper.stroke();
      });
      paper.globalAlpha = 1;
    },
    points(layer) {
      const many = layer.place.row / replay.dim, chosen = chosenOf(layer);
      const spots = new Array(many);
      for (let k = 0; k < many; k++) spots[k] = spot(point(layer.place, frame, k));
      const order = Array.from({ length: many }, (_, k) => k);
      if (solid) order.sort((a, b) => spots[b][2] - spots[a][2]);
      const own = layer.size * scale[0] * camera.zoom * 0.72;
      const springs = !chosen && tints().length > 0;  // they have the colours: bodies do not hide them
      const plain = springs ? 1.5 : layer.large ? 9 : layer.radius ? 0 : layer.size ? Math.max(0.8, own) : Math.max(2, Math.min(7, 60 / Math.sqrt(many)));
      const pinned = new Set(layer.pinned);
      let far = 1, near = 0;
      if (solid) { far = -Infinity; near = Infinity; for (const each of spots) { far = Math.max(far, each[2]); near = Math.min(near, each[2]); } }
      for (const k of order) {
        const [x, y, away] = spots[k];
        paper.fillStyle = springs ? ink.soft : !chosen ? replay.palette[0] : chosen.group ? bodyColour(chosen.group[k])
          : ramp(chosen.ramp || "viridis", chosen.values.whole[frame * chosen.values.row + k]);
        if (pinned.has(k)) { paper.fillStyle = ink.ink; paper.fillRect(x - 4, y - 4, 8, 8); continue; }
        const radius = layer.radius ? layer.radius[k] * scale[0] * camera.zoom : plain;
        if (radius < 2.2 && !layer.radius) paper.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        else { paper.beginPath(); paper.arc(x, y, radius, 0, 7); paper.fill(); }
        if (solid && many > 50) {  // what is far is darker
          paper.fillStyle = `rgba(0,0,0,${(0.4 * (away - near)) / (far - near || 1)})`;
          if (radius < 2.2) paper.fillRect(x - radius, y - radius, 2 * radius, 2 * radius); else paper.fill();
        }
        if (layer.radius) {
          paper.strokeStyle = ink.ink;
          paper.lineWidth = 0.8;
          paper.stroke();
          if (many <= 40 && radius > 7) {
            paper.fillStyle = "#fff";
            paper.strokeStyle = "#222";
            paper.lineWidth = 2.5;
            paper.font = "600 11px system-ui, sans-serif";
            paper.textAlign = "center";
            paper.textBaseline = "middle";
            paper.strokeText(k, x, y);
            paper.fillText(k, x, y);
          }
        }
      }
    },
    rings(layer) {
      paper.strokeStyle = replay.palette[1];
      paper.lineWidth = 2;
      for (let k = 0; k < layer.place.row / replay.dim; k++) {
        if (!layer.shown.whole[frame * layer.shown.row + k]) continue;
        const [x, y] = spot(point(layer.place, frame, k));
        paper.beginPath();
        paper.arc(x, y, 9, 0, 7);
        paper.stroke();
      }
    },
    shapes() {},  // all together, in shapes(): what is near hides what is far
    picture(layer) {
      if (layer !== current("picture")) return;
      const [wide, tall] = layer.cells, image = new ImageData(wide, tall), table = replay.tables[layer.ramp];
      for (let x = 0; x < wide; x++) {
        for (let y = 0; y < tall; y++) {
          const value = 3 * layer.values.whole[frame * layer.values.row + x * tall + y], at = 4 * ((tall - 1 - y) * wide + x);
          image.data[at] = table[value]; image.data[at + 1] = table[value + 1]; image.data[at + 2] = table[value + 2]; image.data[at + 3] = 255;
        }
      }
      const sheet = document.createElement("canvas");
      sheet.width = wide;
      sheet.height = tall;
      sheet.getContext("2d").putImageData(image, 0, 0);
      const [left, low] = spot(layer.low_corner), [right, high] = spot(layer.high_corner);
      paper.imageSmoothingEnabled = wide > 60;
      paper.drawImage(sheet, left, high, right - left, low - high);
    },
    curve(layer) {
      const row = layer.values.row, first = frame * row;
      paper.lineWidth = 1;
      paper.strokeStyle = ink.line;
      stroke(layer, 0, row);
      paper.lineWidth = 2.2;
      paper.strokeStyle = replay.palette[0];
      stroke(layer, first, row);
    },
  };
  function stroke(layer, first, row) {
    paper.beginPath();
    for (let k = 0; k < row; k++) {
      const [x, y] = spot([layer.across[k], layer.values.values[first + k]]);
      if (k) paper.lineTo(x, y); else paper.moveTo(x, y);
    }
    paper.stroke();
    if (row < 40) for (let k = 0; k < row; k++) {
      const [x, y] = spot([layer.across[k], layer.values.values[first + k]]);
      paper.beginPath(); paper.arc(x, y, 3, 0, 7); paper.fillStyle = paper.strokeStyle; paper.fill();
    }
  }
  function trace(ends, close = true) {
    paper.beginPath();
    ends.forEach(([x, y], k) => (k ? paper.lineTo(x, y) : paper.moveTo(x, y)));
    if (close) paper.closePath();
  }
  function matrix(turn) {
    if (turn.length === 1) { const c = Math.cos(turn[0]), s = Math.sin(turn[0]); return [[c, -s], [s, c]]; }
    const size = Math.hypot(...turn) || 1, [w, x, y, z] = turn.map((value) => value / size);
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]];
  }
  function shapes(layers) {
    const faces = [];
    for (const layer of layers) {
      layer.shapes.forEach((shape, number) => {
        const place = point(layer.place, frame, number), each = layer.turn.row / layer.shapes.length;
        const turn = matrix(Array.from(layer.turn.values.subarray(frame * layer.turn.row + number * each, frame * layer.turn.row + (number + 1) * each)));
        for (const part of shape.parts) {
          const ends = part.points.map((p) => spot(turn.map((row, axis) => place[axis] + row.reduce((sum, r, k) => sum + r * p[k], 0))));
          for (const face of part.faces) {
            const seen = face.map((k) => ends[k]);
            let light = 0;
            if (solid) {
              const [a, b, c] = [seen[0], seen[1], seen[2]].map((end) => [end[0], -end[1], -end[2] * scale[0]]);
              const u = b.map((v, k) => v - a[k]), v = c.map((w, k) => w - a[k]);
              let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
              const size = Math.hypot(...normal) || 1;
              normal = normal.map((value) => (value * Math.sign(normal[2] || 1)) / size);
              light = 0.25 + 0.6 * Math.max(0, 0.3 * normal[0] + 0.7 * normal[1] + 0.55 * normal[2]);
            }
            faces.push({ seen, light, away: seen.reduce((sum, end) => sum + end[2], 0) / seen.length, colour: bodyColour(shape.colour), edged: part.faces.length < 8 });
          }
          if (part.mark) faces.push({ seen: [ends[part.mark[0]], ends[part.mark[1]]], away: -1e9, line: true });
        }
      });
    }
    if (solid) faces.sort((a, b) => b.away - a.away);
    for (const face of faces) {
      trace(face.seen, !face.line);
      if (!face.line) {
        paper.fillStyle = face.colour;
        paper.fill();
        if (solid) { paper.fillStyle = face.light > 0.55 ? `rgba(255,255,255,${face.light - 0.55})` : `rgba(0,0,0,${0.55 - face.light})`; paper.fill(); }
        if (solid && !face.edged) { paper.strokeStyle = face.colour; paper.lineWidth = 0.4; paper.stroke(); }
      }
      if (face.line || face.edged) { paper.strokeStyle = ink.ink; paper.lineWidth = 0.9; paper.stroke(); }
    }
  }

  // ---- scales ----
  function round(span) {
    const ten = 10 ** Math.floor(Math.log10(span));
    return ten * (span / ten >= 5 ? 5 : span / ten >= 2 ? 2 : 1);
  }
  const text = (value) => Number(value.toPrecision(3)).toString().replace("-", "\u2212");
  function axes() {
    paper.strokeStyle = ink.edge;
    paper.fillStyle = ink.soft;
    paper.font = "12px system-ui, sans-serif";
    paper.lineWidth = 1;
    const bounds = [corners[0], corners[3]].map(([x, y]) => [across(x - middle[0]), up(y - middle[1])]);
    paper.strokeRect(bounds[0][0], bounds[1][1], bounds[1][0] - bounds[0][0], bounds[0][1] - bounds[1][1]);
    for (const axis of [0, 1]) {
      const low = replay.low[axis], high = replay.high[axis], step = round((high - low) / 3);
      for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) {
        const shown = text(Math.abs(tick) < 1e-9 * step ? 0 : tick);
        if (axis === 0) { paper.textAlign = "center"; paper.textBaseline = "top"; paper.fillText(shown, across(tick - middle[0]), bounds[0][1] + 5); }
        else { paper.textAlign = "right"; paper.textBaseline = "middle"; paper.fillText(shown, bounds[0][0] - 6, up(tick - middle[1])); }
      }
    }
    paper.textAlign = "center";
    paper.textBaseline = "bottom";
    paper.fillText(replay.axes[0], (bounds[0][0] + bounds[1][0]) / 2, height - 4);
    paper.save();
    paper.translate(12, (bounds[0][1] + bounds[1][1]) / 2);
    paper.rotate(-Math.PI / 2);
    paper.textBaseline = "top";
    paper.fillText(replay.axes[1], 0, -10);
    paper.restore();
  }
  function ruler() {
    const size = round(width / 4 / (scale[0] * camera.zoom)), long = size * scale[0] * camera.zoom;
    paper.strokeStyle = paper.fillStyle = ink.soft;
    paper.lineWidth = 2;
    trace([[16, height - 12], [16 + long, height - 12]], false);
    paper.stroke();
    paper.font = "12px system-ui, sans-serif";
    paper.textAlign = "left";
    paper.textBaseline = "bottom";
    paper.fillText(`${text(size)} ${replay.unit}`, 16, height - 16);
  }
  function colours() {
    const chosen = current("picture") || tints()[Math.min(shade, tints().length - 1)];
    bar.hidden = !chosen || Boolean(chosen.group) || chosen.low === undefined;
    if (bar.hidden) return;
    const table = replay.tables[chosen.ramp || "viridis"], stops = [];
    for (let k = 0; k <= 16; k++) { const at = 3 * Math.min(255, k * 16); stops.push(`rgb(${table[at]},${table[at + 1]},${table[at + 2]})`); }
    bar.querySelector("i").style.background = `linear-gradient(90deg, ${stops.join(",")})`;
    bar.querySelector(".low").textContent = text(chosen.low);
    bar.querySelector(".high").textContent = `${text(chosen.high)} ${chosen.unit || ""}`;
    bar.querySelector(".what").textContent = chosen.name + (chosen.log ? " (logarithmic)" : "");
  }

  function render() {
    if (!ready) return;
    paper.clearRect(0, 0, width, height);
    paper.save();
    if (replay.axes && !solid) {
      paper.beginPath();
      paper.rect(margins[3] - 2, margins[0] - 2, width - margins[1] - margins[3] + 4, height - margins[0] - margins[2] + 4);
      paper.clip();
    }
    const solids = replay.layers.filter((layer) => layer.kind === "shapes");
    const points = replay.layers.some((layer) => layer.kind === "points");
    for (const layer of replay.layers) if (layer.kind === "flat" || layer.kind === "box") draw[layer.kind](layer);
    if (points && solids.length) shapes(solids);
    for (const layer of replay.layers) if (layer.kind !== "flat" && layer.kind !== "box") draw[layer.kind](layer);
    if (!points && solids.length) shapes(solids);
    paper.restore();
    if (replay.axes) axes(); else if (replay.unit || solid) ruler();
    const now = replay.time[frame];
    slider.value = frame;
    label.textContent = `t = ${text(now)} ${replay.time_unit}`;
    slider.setAttribute("aria-valuetext", `${text(now)} ${replay.time_unit === "s" ? "seconds" : replay.time_unit}`);
  }

  // ---- control ----
  function step(stamp) {
    if (!playing) return;
    if (before) {
      place += (((stamp - before) / 1000) * Number(pace.value) * (frames - 1)) / length;
      if (place > frames - 1) place = place > frames - 1 + 0.12 * frames ? 0 : place;  // rests at the end for a moment
    }
    before = stamp;
    const next = Math.min(frames - 1, Math.floor(place));
    if (next !== frame) { frame = next; render(); }
    requestAnimationFrame(step);
  }
  let place = 0;
  function toggle(on) {
    playing = on;
    play.textContent = on ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(on));
    before = 0;
    if (on) { place = frame >= frames - 1 ? 0 : frame; requestAnimationFrame(step); }
  }
  play.addEventListener("click", () => toggle(!playing));
  slider.addEventListener("input", () => { toggle(false); frame = Number(slider.value); render(); });
  const choices = () => (layerOf("picture") ? replay.layers.filter((l) => l.kind === "picture") : tints());
  tint.addEventListener("change", () => { shade = Number(tint.value); fit(); colours(); render(); });
  again.addEventListener("click", () => { Object.assign(camera, { turn: 0.52, rise: 0.35, zoom: 1, x: 0, y: 0 }); render(); });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [dx, dy] = [event.clientX - held[0], event.clientY - held[1]];
    held = [event.clientX, event.clientY];
    if (solid && !event.shiftKey) turn(-dx / 150, dy / 150); else { camera.x += dx; camera.y += dy; render(); }
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // the wheel alone scrolls the page
    event.preventDefault();
    camera.zoom = Math.max(0.3, Math.min(20, camera.zoom * Math.exp(-event.deltaY / 300)));
    render();
  }, { passive: false });
  function turn(by, rise) {
    camera.turn += by;
    camera.rise = Math.max(-1.5, Math.min(1.5, camera.rise + rise));
    render();
  }
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (event.key === " ") toggle(!playing);
    else if (event.key === "+") { camera.zoom *= 1.15; render(); }
    else if (event.key === "-") { camera.zoom /= 1.15; render(); }
    else if (moves && solid) turn(...moves);
    else if (moves) { frame = Math.max(0, Math.min(frames - 1, frame + Math.sign(moves[0]))); render(); }
    else return;
    event.preventDefault();
  });
  const restyle = () => { inks(); fit(); render(); };
  addEventListener("resize", restyle);
  addEventListener("themechange", restyle);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);

  load().then(() => {
    slider.max = frames - 1;
    choices().forEach((each, k) => tint.add(new Option(each.name, k)));
    tint.closest("label").hidden = choices().length < 2;
    ready = true;
    colours();
    restyle();
    home.classList.add("ready");
  }).catch((error) => { notice.textContent = `This browser cannot show the replay: ${error.message}`; });
});
