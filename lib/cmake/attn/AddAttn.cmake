# The few CMake helpers of attn-mlir. Libraries are static, named Attn<Folder>, and link the MLIR and LLVM dylibs.

# Flags for all of our code; MLIR's headers are system headers, so that warnings as errors concern only our own.
macro(attn_global_settings)
  separate_arguments(ATTN_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
  add_definitions(${ATTN_LLVM_DEFINITIONS})
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  add_compile_options(-Wall -Wextra -Werror -Wno-unused-parameter $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  find_program(ATTN_CCACHE ccache)
  if(ATTN_CCACHE)
    # What ccache asks for before it takes compilations with a precompiled header.
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ATTN_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
  find_program(ATTN_LLD NAMES ld.lld-22 ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
  if(ATTN_LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_link_options(-fuse-ld=lld)
  endif()
  if(ATTN_SANITIZE)
    # `function` reads a word before the code it calls, which code compiled in process does not have.
    add_compile_options(-fsanitize=${ATTN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
                        $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-sanitize=function>)
    add_link_options(-fsanitize=${ATTN_SANITIZE})
  endif()
endmacro()

# MLIR's headers are two thirds of a compilation: parsed once, into a header that all libraries share.
function(attn_precompile_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp "// One file, so that there is a header to precompile.\n")
  add_library(AttnPrecompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  set_target_properties(AttnPrecompiled PROPERTIES PCH_INSTANTIATE_TEMPLATES ON)
  target_precompile_headers(AttnPrecompiled PRIVATE ${PROJECT_SOURCE_DIR}/lib/cmake/attn/Precompiled.h)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(AttnPrecompiled PRIVATE -Xclang -fno-pch-timestamp)
  endif()
endfunction()

# add_attn_library(AttnPattern SRCS a.cpp b.cpp LINK_LIBS AttnDialect DEPENDS tablegen-targets)
function(add_attn_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;LINK_LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_link_libraries(${name} PUBLIC MLIR LLVM ${ARG_LINK_LIBS})
  if(ATTN_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM AttnPrecompiled)
  endif()
  attn_export_library(${name})
endfunction()

# Makes a library part of the installed package: find_package(Attn) gives AttnPattern as Attn::Pattern.
function(attn_export_library name)
  string(REGEX REPLACE "^Attn" "" exported ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  add_library(Attn::${exported} ALIAS ${name})
  install(TARGETS ${name} EXPORT AttnTargets ARCHIVE DESTINATION lib)
  set_property(GLOBAL APPEND PROPERTY ATTN_LIBS ${name})
endfunction()

# The last call of the tree: headers and the package files. (Libraries and tools name themselves above.)
function(attn_install_package)
  foreach(tree ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    install(DIRECTORY ${tree}/include/attn DESTINATION include
            FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
  endforeach()
  include(CMakePackageConfigHelpers)
  get_property(ATTN_LIBS GLOBAL PROPERTY ATTN_LIBS)
  string(REGEX REPLACE "(^|;)Attn" "\\1Attn::" ATTN_LIBS "${ATTN_LIBS}")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/attn/AttnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lib/cmake/attn/AttnConfig.cmake INSTALL_DESTINATION lib/cmake/attn)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lib/cmake/attn/AttnConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/lib/cmake/attn/AttnConfig.cmake
                ${PROJECT_BINARY_DIR}/lib/cmake/attn/AttnConfigVersion.cmake DESTINATION lib/cmake/attn)
  if(ATTN_LIBS)
    install(EXPORT AttnTargets NAMESPACE Attn:: DESTINATION lib/cmake/attn)
  endif()
endfunction()

# add_attn_tool(attn-opt SRCS attn-opt.cpp LINK_LIBS AttnRegister): the dylibs come first, so that no static MLIR is pulled in.
function(add_attn_tool name)
  cmake_parse_arguments(ARG "" "" "SRCS;LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE MLIR LLVM ${ARG_LINK_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
                                           INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# attn_tablegen(TARGET Foo.td -gen-x out.inc ...): generated files land in the build's include tree.
function(attn_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args out)
    set(flags)
    while(args)
      list(GET args 0 next)
      if(NOT next MATCHES "^-")
        break()
      endif()
      list(POP_FRONT args flag)
      list(APPEND flags ${flag})
    endwhile()
    mlir_tablegen(${out} ${flags} -I${PROJECT_SOURCE_DIR}/include)
  endwhile()
  add_public_tablegen_target(${target})
endfunction()
