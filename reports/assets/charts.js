// The bar charts: ladder, steps per config, wait accounting. Chart.js draws; a table with the same numbers
// stands beside each.
'use strict';
(function () {
  const {data, color, us, percent, number} = fusescope;
  if (typeof Chart === 'undefined') {
    document.body.classList.add('missing-charts');
    return;
  }
  let charts = [];

  // Writes each bar's text behind its end.
  const endLabels = (texts) => ({
    id: 'endLabels',
    afterDatasetsDraw(chart) {
      const {ctx, scales, chartArea} = chart;
      ctx.save();
      ctx.font = '600 12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      texts.forEach(({at, text, tone}, i) => {
        ctx.fillStyle = color(tone || 'ink');
        const x = scales.x.getPixelForValue(at) + 7;
        const room = chart.width - x >= ctx.measureText(text).width;
        const y = scales.y.getPixelForValue(i);
        ctx.textAlign = room ? 'left' : 'right';
        if (room) {
          ctx.fillStyle = color('bg');
          ctx.fillRect(x - 2, y - 9, ctx.measureText(text).width + 4, 18);
          ctx.fillStyle = color(tone || 'ink');
        }
        ctx.fillText(text, room ? x : chartArea.right - 4, y);
      });
      ctx.restore();
    },
  });

  // A dashed line down the plot, for the serial layer's wall.
  const marker = (at) => ({
    id: 'marker',
    beforeDatasetsDraw({ctx, scales, chartArea}) {
      const x = scales.x.getPixelForValue(at);
      ctx.save();
      ctx.strokeStyle = color('muted');
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      ctx.restore();
    },
  });

  function options({title, stacked, right, ticks, tooltip, legend}) {
    return {
      indexAxis: 'y', animation: false, maintainAspectRatio: false, responsive: true,
      layout: {padding: {right}},
      interaction: {mode: 'nearest', axis: 'xy', intersect: true},
      plugins: {
        legend: {display: legend, position: 'bottom', align: 'start',
                 labels: {boxWidth: 11, boxHeight: 11, padding: 10, color: color('ink')}},
        tooltip: {callbacks: tooltip, backgroundColor: color('ink'), titleColor: color('bg'), bodyColor: color('bg')},
      },
      scales: {
        x: {stacked, beginAtZero: true, title: {display: true, text: title, color: color('muted')},
            grid: {color: color('faint'), drawBorder: false}, ticks: {callback: ticks, color: color('muted')}},
        y: {stacked, grid: {display: false, drawBorder: false}, ticks: {color: color('ink'), autoSkip: false}},
      },
    };
  }

  function make(id, rows, config) {
    const canvas = document.getElementById(id);
    canvas.parentElement.style.height = rows + 'px';
    charts.push(new Chart(canvas, {type: 'bar', ...config}));
    canvas.dataset.ready = 'true';
  }

  function ladder() {
    const steps = data.ladder.filter((step) => step.ran);
    if (steps.length === 0) return;
    const serial = steps[0].wall;
    const floats = steps.map((step, i) => i === 0 ? null : [steps[i - 1].wall, step.wall]);
    const tone = (step) => step.gain >= 0 ? 'gain' : 'loss';
    make('chart-ladder', steps.length * 38 + 62, {
      data: {
        labels: steps.map((step) => step.name),
        datasets: [
          {label: 'change', data: floats, grouped: false, barPercentage: .72, categoryPercentage: 1, order: 1,
           backgroundColor: steps.map((step) => color(tone(step)))},
          {label: 'wall', data: steps.map((step) => step.wall), grouped: false, barPercentage: .72, categoryPercentage: 1, order: 2,
           backgroundColor: steps.map((_, i) => i === 0 ? color('step-barrier') : color('barfill'))},
        ],
      },
      options: options({
        title: 'wall, ' + fusescope.word + ' [\u00b5s]', stacked: false, right: 118, legend: false,
        ticks: (value) => number(value, 0),
        tooltip: {
          label: ({dataIndex, datasetIndex}) => datasetIndex === 1
            ? 'wall ' + us(steps[dataIndex].wall)
            : (steps[dataIndex].gain >= 0 ? 'gains ' : 'loses ') + us(Math.abs(steps[dataIndex].gain)),
        },
      }),
      plugins: [marker(serial), endLabels(steps.map((step, i) => ({
        at: i === 0 ? step.wall : Math.max(step.wall, steps[i - 1].wall),
        text: number(step.wall, 0) + ' \u00b5s' + (i === 0 ? '' : '  ' + percent(step.serial, true)),
        tone: i === 0 ? 'ink' : step.serial <= 0 ? 'gain' : 'loss',
      })))],
    });
  }

  function stacked(id, source, {title, scale, format, totals, right, max}) {
    if (source.labels.length === 0) return;
    const sums = source.labels.map((_, i) => source.series.reduce((sum, row) => sum + row.values[i] * scale, 0));
    const config = {
      data: {
        labels: source.labels,
        datasets: source.series.map((row) => ({
          label: row.name, data: row.values.map((value) => value * scale), backgroundColor: color(row.color),
          borderColor: color('bg'), borderWidth: {right: 1}, barPercentage: .8, categoryPercentage: 1,
        })),
      },
      options: options({
        title, stacked: true, right, legend: true, ticks: (value) => number(value, 0),
        tooltip: {label: ({dataset, raw}) => dataset.label + ': ' + format(raw)},
      }),
      plugins: totals ? [endLabels(sums.map((sum) => ({at: sum, text: format(sum)})))] : [],
    };
    if (max) config.options.scales.x.max = max;
    make(id, source.labels.length * 30 + 118, config);
  }

  fusescope.onPaint(() => {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    Chart.defaults.font.family = color('sans');
    Chart.defaults.font.size = 12;
    ladder();
    stacked('chart-steps', data.steps,
            {title: 'critical path, ' + fusescope.word + ' [\u00b5s]', scale: 1, format: (v) => us(v), totals: true, right: 92});
    stacked('chart-accounting', data.accounting,
            {title: 'share of SMs \u00d7 wall, ' + fusescope.word + ' [%]', scale: 100, format: (v) => number(v) + '%',
             totals: false, right: 10, max: 100});
  });
})();
