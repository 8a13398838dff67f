# What `sailor version --full` says of the build: rows that the directories add, in the order of `known`, and the revision of the sources,
# which is asked for at every build.

# The numbers that a header defines as `names`, joined by dots: "4.1.4"; empty if it does not define all of them.
function(sailor_header_version out header)   # names...
  set(version "")
  foreach(name ${ARGN})
    file(STRINGS ${header} line REGEX "define +${name} +\"?[0-9]" LIMIT_COUNT 1)
    if(line MATCHES "${name} +\"?([0-9][0-9.]*)")
      list(APPEND version ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN version . version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(sailor_built_with name value)
  set_property(GLOBAL PROPERTY sailor_built_with_${name} "${value}")
endfunction()

# The header of all rows. Call it when all directories are known.
function(sailor_write_build_info file)
  set(known version compiler target build_type compile_flags link_flags yaml_cpp nlohmann_json cli11 fmt zlib slurm open_mpi libtorch onednn
    zeromq libsodium hwloc icu parquet cuda nccl processor_kernels gpu_kernels)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  foreach(kind CXX_FLAGS EXE_LINKER_FLAGS)
    # Without the directory of the build, and in one form however they were given.
    string(REGEX REPLACE "-f[a-z]+-prefix-map=[^ ]*" "" ${kind} "${CMAKE_${kind}} ${CMAKE_${kind}_${type}}")
    string(REGEX REPLACE "  +" " " ${kind} "${${kind}}")
    string(STRIP "${${kind}}" ${kind})
  endforeach()
  sailor_built_with(version ${PROJECT_VERSION})
  sailor_built_with(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  sailor_built_with(target "${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_SYSTEM_NAME}")
  sailor_built_with(build_type "${CMAKE_BUILD_TYPE}")
  sailor_built_with(compile_flags "${CXX_FLAGS}")
  sailor_built_with(link_flags "${EXE_LINKER_FLAGS}")
  set(rows "")
  foreach(name ${known})
    get_property(value GLOBAL PROPERTY sailor_built_with_${name})
    if("${value}" STREQUAL "")
      set(value none)
    endif()
    string(APPEND rows "    {\"${name}\", R\"text(${value})text\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
"// Made by etc/packaging/build_info.cmake.
#pragma once
#include <utility>
namespace sailor::cli {
inline constexpr std::pair<const char*, const char*> kBuildInfo[] = {
@rows@};
}  // namespace sailor::cli
")
endfunction()
