# One interface target carries what every fusescope library and program is compiled with.
add_library(fusescope_options INTERFACE)
target_include_directories(fusescope_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src   # "layer/shape.hpp"
  ${PROJECT_SOURCE_DIR})      # "analysis/critical_path.hpp", "kernels/..."
target_compile_options(fusescope_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror>)

if(FUSESCOPE_FUZZ)  # everything is compiled so that a fuzzer sees which branches an input takes
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FUSESCOPE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  set(fuzz_sanitizers -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  target_compile_options(fusescope_options INTERFACE ${fuzz_sanitizers})
  target_link_options(fusescope_options INTERFACE ${fuzz_sanitizers})
  target_compile_definitions(fusescope_options INTERFACE FUSESCOPE_FUZZING)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# The commit that results are stamped with: read on every build, so that it is never stale.
set(FUSESCOPE_VERSION_HEADER_DIR ${CMAKE_BINARY_DIR}/generated)
add_custom_target(fusescope_version
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${FUSESCOPE_VERSION_HEADER_DIR}/fusescope_version.hpp
          -P ${PROJECT_SOURCE_DIR}/cmake/WriteVersion.cmake
  BYPRODUCTS ${FUSESCOPE_VERSION_HEADER_DIR}/fusescope_version.hpp
  COMMENT "Stamping the commit")

# fusescope_library(name SOURCES... [LINK libs...]): a static library with the project's options.
function(fusescope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC fusescope_options ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# For libraries in whose inner loops the tests spend their time: they are optimised also where a sanitizer's
# build, for the sake of its compile time, leaves everything else as it is written.
function(fusescope_hot name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()
