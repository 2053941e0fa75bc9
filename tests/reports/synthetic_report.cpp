// Writes the synthetic report into a folder, to look at: synthetic_report FOLDER.

#include <cstdio>
#include <exception>

#include "synthetic.hpp"

int main(int count, char** arguments) try {
  if (count != 2) {
    std::fprintf(stderr, "usage: synthetic_report FOLDER\n");
    return 2;
  }
  const auto written =
      fusescope::reports::write_report(fusescope::reports::synthetic_input(), arguments[1]);
  for (const std::string& path : written.paths) {
    std::printf("%s\n", path.c_str());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
