// One board of the chart, drawn by the components that Grafana makes its panels of. What a Grafana does around them is
// here: it asks Prometheus, fills in variables, applies transformations and overrides, and lays the panels out.
import 'uplot/dist/uPlot.min.css';
import { createRoot } from 'react-dom/client';
import { Global } from '@emotion/react';
import {
  FieldType, Registry, ThemeContext, applyFieldOverrides, createTheme, dateTime, getDisplayValueAlignmentFactors,
  getFieldDisplayValues, identityOverrideProcessor, standardTransformers, standardTransformersRegistry, toDataFrame,
  transformDataFrame,
} from '@grafana/data';
import { BarGauge, BigValue, GlobalStyles, PanelChrome, Table, TimeSeries } from '@grafana/ui';

const asked = new URLSearchParams(location.search);
const [from, to, boardWidth] = ['from', 'to', 'width'].map((name) => Number(asked.get(name)));
const range = { from: dateTime(from * 1000), to: dateTime(to * 1000) };
range.raw = range;
const theme = createTheme({ colors: { mode: 'dark' } });
const timeZone = 'utc';
const replaceVariables = (text) => text;

// Grafana registers these when it starts.
const option = (id, isCustom) => ({
  id, path: id.replace('custom.', ''), isCustom, name: id, settings: {}, editor: () => null, override: () => null,
  process: identityOverrideProcessor, shouldApply: () => true,
});
const fieldConfigRegistry = new Registry(() => [
  ...['unit', 'min', 'max', 'decimals', 'displayName', 'mappings', 'thresholds', 'color'].map((id) => option(id)),
  ...['align', 'axisPlacement', 'axisSoftMin', 'cellOptions', 'drawStyle', 'fillOpacity', 'inspect', 'lineStyle',
    'lineWidth', 'scaleDistribution', 'showPoints', 'spanNulls', 'stacking'].map((id) => option(`custom.${id}`, true)),
]);
standardTransformersRegistry.setInit(() => ['joinByFieldTransformer', 'mergeTransformer', 'organizeFieldsTransformer']
  .map((name) => standardTransformers[name])
  .map((transformation) => ({ id: transformation.id, name: transformation.name, transformation })));

const step = Math.max(5, Math.round((to - from) / 300));
const variables = {
  topic: '.+', instance: '.+', client: '.+', __range: `${to - from}s`, __rate_interval: `${Math.max(20, step + 5)}s`,
};
const filledIn = (text) => text.replace(/\$(\w+)/g, (all, name) => variables[name] ?? all);

async function query(target) {
  const what = new URLSearchParams({ query: filledIn(target.expr) });
  if (target.instant) what.set('time', to);
  else Object.entries({ start: from, end: to, step }).forEach(([name, value]) => what.set(name, value));
  const answer = await (await fetch(`/api/v1/query${target.instant ? '' : '_range'}?${what}`)).json();
  if (answer.status !== 'success') throw new Error(`${target.expr}: ${JSON.stringify(answer)}`);
  const { result } = answer.data;
  return target.format === 'table' ? [tableOf(target, result)] : result.map((series) => seriesOf(target, series));
}

function tableOf(target, result) {
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map(() => to * 1000) },
      ...labels.map((name) => (
        { name, type: FieldType.string, values: result.map(({ metric }) => metric[name] ?? '') })),
      { name: `Value #${target.refId}`, type: FieldType.number, values: result.map(({ value }) => Number(value[1])) },
    ],
  });
}

function seriesOf(target, { metric, values, value }) {
  const displayNameFromDS = target.legendFormat
    ? target.legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? '') : 'Value';
  const at = new Map((values ?? [value]).map(([time, v]) => [time, Number(v)]));
  const times = [];
  for (let time = target.instant ? to : from; time <= to; time += step) times.push(time);
  return toDataFrame({
    refId: target.refId,
    name: displayNameFromDS,
    fields: [
      { name: 'Time', type: FieldType.time, values: times.map((time) => time * 1000) },
      { name: 'Value', type: FieldType.number, values: times.map((time) => at.get(time) ?? null), labels: metric,
        config: { displayNameFromDS } },
    ],
  });
}

async function load({ targets = [], transformations = [], fieldConfig }) {
  const frames = (await Promise.all(targets.map(query))).flat();
  const data = await new Promise((done) => {
    transformDataFrame(transformations, frames, { interpolate: replaceVariables }).subscribe(done);
  });
  return applyFieldOverrides({ data, fieldConfig, replaceVariables, theme, fieldConfigRegistry, timeZone });
}

const Note = ({ children }) => (
  <div style={{ display: 'grid', placeItems: 'center', height: '100%', color: theme.colors.text.secondary }}>
    {children}
  </div>
);

function Panel({ panel: { type, options, fieldConfig }, data, width, height }) {
  if (type === 'heatmap') return <Note>A heat map: only a whole Grafana draws it.</Note>;
  if (data.length === 0) return <Note>No data</Note>;
  if (type === 'table') {
    return <Table {...{ data: data[0], width, height, cellHeight: 'sm', initialSortBy: options.sortBy }} />;
  }
  if (type === 'timeseries') {
    data.flatMap(({ fields }) => fields).filter((field) => field.type === FieldType.number).forEach((field) => {
      field.config.custom = { lineInterpolation: 'linear', pointSize: 5, ...field.config.custom };
    });
    return <TimeSeries {...{ frames: data, timeRange: range, timeZone, width, height, options, replaceVariables,
      legend: options.legend }} />;
  }
  const values = getFieldDisplayValues({ data, fieldConfig, reduceOptions: options.reduceOptions, replaceVariables,
    theme, timeZone, sparkline: options.graphMode === 'area' });
  if (type === 'stat') {
    return values.map(({ display, sparkline }, i) => <BigValue key={i} {...{ theme, value: display, sparkline, height,
      width: width / values.length, colorMode: options.colorMode, graphMode: options.graphMode,
      textMode: options.textMode, justifyMode: options.justifyMode }} />);
  }
  const alignmentFactors = getDisplayValueAlignmentFactors(values);
  return values.map(({ display, field, view, colIndex }, i) => (
    <div key={i} style={{ marginBottom: 8 }}>
      <BarGauge {...{ theme, value: display, display: view.getFieldDisplayProcessor(colIndex), field, width,
        height: (height + 8) / values.length - 8, alignmentFactors, orientation: options.orientation,
        displayMode: options.displayMode, showUnfilled: options.showUnfilled, valueDisplayMode: options.valueMode,
        text: {} }} />
    </div>
  ));
}

const board = await (await fetch(`/board/${asked.get('board')}`)).json();
const data = await Promise.all(board.panels.map((panel) => (panel.type === 'row' ? [] : load(panel))));
const column = (boardWidth - 8) / 24, cell = 38, gap = 8; // as Grafana has them
document.body.style.margin = 0;
createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <Global styles={{ '*, *::before, *::after': { boxSizing: 'border-box' },
      body: { background: theme.colors.background.canvas, fontFamily: 'Inter, Helvetica, Arial, sans-serif' } }} />
    <div style={{ padding: '12px 16px', fontSize: 18 }}>{board.title}</div>
    {board.panels.map((panel, i) => {
      const { x, y, w, h } = panel.gridPos, width = w * column - gap, height = h * cell - gap;
      const style = { position: 'absolute', left: gap + x * column, top: 48 + y * cell, width, height };
      if (panel.type === 'row') {
        const closed = panel.collapsed ? ` (${panel.panels.length} panels)` : '';
        const mark = panel.collapsed ? '›' : '⌄';
        return <div key={i} style={{ ...style, fontSize: 16 }}>{mark} {panel.title}{closed}</div>;
      }
      return (
        <div key={i} style={style}>
          <PanelChrome title={panel.title} width={width} height={height}>
            {(inner, high) => <Panel panel={panel} data={data[i]} width={inner} height={high} />}
          </PanelChrome>
        </div>
      );
    })}
  </ThemeContext.Provider>,
);
