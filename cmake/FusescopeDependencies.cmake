# Everything comes from Debian's packages or the CUDA toolkit; header-only or static where a library
# would otherwise have to exist on the machine that a binary is carried to.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
option(FUSESCOPE_FMT_COMPILED "Link fmt's library instead of compiling fmt into every file" OFF)
if(FUSESCOPE_FMT_COMPILED)  # a file with sanitizers compiles in a fifth of the time; such a binary stays here
  set_target_properties(fmt::fmt-header-only PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "" INTERFACE_LINK_LIBRARIES fmt::fmt)
endif()
find_package(CLI11 REQUIRED)
if(FUSESCOPE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(FUSESCOPE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# A binary that is carried to a GPU machine must not ask for shared libraries that are only here.
find_library(FUSESCOPE_ZLIB_STATIC NAMES libz.a REQUIRED)
add_library(fusescope_zlib INTERFACE)
target_link_libraries(fusescope_zlib INTERFACE ${FUSESCOPE_ZLIB_STATIC})

find_library(FUSESCOPE_SQLITE_STATIC NAMES libsqlite3.a REQUIRED)
add_library(fusescope_sqlite INTERFACE)
target_link_libraries(fusescope_sqlite INTERFACE ${FUSESCOPE_SQLITE_STATIC} Threads::Threads
  ${CMAKE_DL_LIBS} m)

# simdjson comes as a shared library only. Its header is compiled in; the one function of the library
# that the header needs is looked up when a JSON trace is read (src/timeline/import/event_parser.cpp).
find_package(simdjson REQUIRED)
add_library(fusescope_simdjson INTERFACE)
foreach(config RELWITHDEBINFO RELEASE NONE NOCONFIG)
  get_target_property(FUSESCOPE_SIMDJSON_SONAME simdjson::simdjson IMPORTED_SONAME_${config})
  if(FUSESCOPE_SIMDJSON_SONAME)
    break()
  endif()
endforeach()
if(NOT FUSESCOPE_SIMDJSON_SONAME)
  set(FUSESCOPE_SIMDJSON_SONAME libsimdjson.so)
endif()
target_compile_definitions(fusescope_simdjson INTERFACE
  FUSESCOPE_SIMDJSON_SONAME="${FUSESCOPE_SIMDJSON_SONAME}")
target_link_libraries(fusescope_simdjson INTERFACE ${CMAKE_DL_LIBS})

set(FUSESCOPE_HAVE_CUDA OFF)
set(FUSESCOPE_WHY_NO_CUDA "FUSESCOPE_CUDA is OFF")
if(FUSESCOPE_CUDA)
  set(FUSESCOPE_WHY_NO_CUDA "no CUDA 13 toolkit")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES OFF)  # set below, in the exact form wgmma and setmaxnreg need
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    if(CUDAToolkit_VERSION VERSION_LESS 13.0)
      set(FUSESCOPE_WHY_NO_CUDA "CUDA ${CUDAToolkit_VERSION} is older than 13.0")
    else()
      set(FUSESCOPE_HAVE_CUDA ON)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's flag for C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(CMAKE_CUDA_STANDARD 20)
      set(CMAKE_CUDA_STANDARD_REQUIRED ON)
      set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    endif()
  endif()
endif()
if(FUSESCOPE_HAVE_CUDA)
  message(STATUS "fusescope: cuda engine: yes (CUDA ${CUDAToolkit_VERSION}, sm_90a; without wgmma sm_90, sm_100, sm_120)")
  # Three kinds of device code, and what each is compiled for:
  #   fusescope_cuda_options   with wgmma and setmaxnreg: sm_90a alone. Tests and benchmarks too.
  #   fusescope_cuda_mma       the GEMM without them: sm_90, sm_100 and sm_120. No line tables: for three
  #                            GPUs they would outweigh the rest of a program.
  #   fusescope_cuda_portable  neither: sm_90, and PTX that the driver of a later GPU compiles
  add_library(fusescope_cuda_flags INTERFACE)
  target_link_libraries(fusescope_cuda_flags INTERFACE fusescope_options)
  target_compile_options(fusescope_cuda_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xptxas=-warn-spills
      -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>)
  set(FUSESCOPE_PORTABLE_CODE "-gencode=arch=compute_90,code=[sm_90,compute_90]")
  foreach(kind options mma portable)
    add_library(fusescope_cuda_${kind} INTERFACE)
    target_link_libraries(fusescope_cuda_${kind} INTERFACE fusescope_cuda_flags)
  endforeach()
  target_compile_options(fusescope_cuda_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-gencode=arch=compute_90a,code=sm_90a -lineinfo>)
  target_compile_options(fusescope_cuda_mma INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-gencode=arch=compute_90,code=sm_90;-gencode=arch=compute_100,code=sm_100;-gencode=arch=compute_120,code=sm_120>")
  target_compile_options(fusescope_cuda_portable INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:${FUSESCOPE_PORTABLE_CODE};-lineinfo>")
else()
  message(STATUS "fusescope: cuda engine: no (${FUSESCOPE_WHY_NO_CUDA}); everything else builds, `auto` is the simulator")
endif()

# Thrust: the toolkit's (CCCL) where there is one, else Debian's libthrust-dev. One device system per
# library that uses it, because the system is a compile-time choice.
add_library(fusescope_thrust INTERFACE)
if(FUSESCOPE_HAVE_CUDA)
  target_include_directories(fusescope_thrust SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS}
    ${CUDAToolkit_INCLUDE_DIRS}/cccl)
else()
  find_path(FUSESCOPE_THRUST_INCLUDE thrust/version.h REQUIRED)
  target_include_directories(fusescope_thrust SYSTEM INTERFACE ${FUSESCOPE_THRUST_INCLUDE})
endif()
