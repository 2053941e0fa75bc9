# Writes the version header only when its content changes, so that nothing is rebuilt for nothing.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#pragma once
inline constexpr const char* kFusescopeVersion = \"@VERSION@\";
inline constexpr const char* kFusescopeCommit = \"@commit@\";
")
