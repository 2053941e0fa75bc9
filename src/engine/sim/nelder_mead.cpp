#include "engine/sim/nelder_mead.hpp"

#include <algorithm>
#include <cstddef>

namespace fusescope::engine::sim {
namespace {

using Point = std::vector<double>;

struct Vertex {
  Point at;
  double value = 0;
};

// from + factor * (to - from)
Point along(const Point& from, const Point& to, double factor) {
  Point point = from;
  for (std::size_t i = 0; i < point.size(); ++i) {
    point[i] += factor * (to[i] - from[i]);
  }
  return point;
}

Point centre_of_all_but_last(const std::vector<Vertex>& simplex) {
  Point centre(simplex.front().at.size(), 0);
  const auto count = static_cast<double>(simplex.size() - 1);
  for (std::size_t v = 0; v + 1 < simplex.size(); ++v) {
    for (std::size_t i = 0; i < centre.size(); ++i) {
      centre[i] += simplex[v].at[i] / count;
    }
  }
  return centre;
}

}  // namespace

Minimum minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<double>& start, double step, double tolerance,
                 int most_evaluations) {
  int evaluations = 0;
  const auto evaluate = [&](Point at) {
    ++evaluations;
    const double value = function(at);
    return Vertex{std::move(at), value};
  };
  std::vector<Vertex> simplex = {evaluate(start)};
  for (std::size_t i = 0; i < start.size(); ++i) {
    Point at = start;
    at[i] += step;
    simplex.push_back(evaluate(std::move(at)));
  }
  const auto better = [](const Vertex& a, const Vertex& b) { return a.value < b.value; };
  std::stable_sort(simplex.begin(), simplex.end(), better);
  while (evaluations < most_evaluations && !start.empty() &&
         simplex.back().value - simplex.front().value > tolerance) {
    const Point centre = centre_of_all_but_last(simplex);
    Vertex& worst = simplex.back();
    const double second_worst = simplex[simplex.size() - 2].value;
    Vertex reflected = evaluate(along(centre, worst.at, -1));
    if (reflected.value < simplex.front().value) {
      Vertex expanded = evaluate(along(centre, worst.at, -2));
      worst = expanded.value < reflected.value ? std::move(expanded) : std::move(reflected);
    } else if (reflected.value < second_worst) {
      worst = std::move(reflected);
    } else {
      const bool outside = reflected.value < worst.value;
      Vertex contracted = evaluate(along(centre, outside ? reflected.at : worst.at, 0.5));
      if (contracted.value < std::min(reflected.value, worst.value)) {
        worst = std::move(contracted);
      } else {
        for (std::size_t v = 1; v < simplex.size(); ++v) {
          simplex[v] = evaluate(along(simplex.front().at, simplex[v].at, 0.5));
        }
      }
    }
    std::stable_sort(simplex.begin(), simplex.end(), better);
  }
  return {simplex.front().at, simplex.front().value, evaluations};
}

}  // namespace fusescope::engine::sim
