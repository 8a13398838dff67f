# Installed files other than programs, locations of the admin's files, and the packages (`cpack -G DEB` or RPM in the build directory,
# after `cmake --build . --target product`).
#
# Two packages: `sailor` for every node (planner, plugin, doctor; needs no libtorch), `sailor-trainer` for compute nodes.
set(SAILOR_SYSCONFDIR "" CACHE STRING
    "Holds sailor/ and slurm/plugstack.conf.d/ (default: /etc under the prefixes /usr and /usr/local, else etc/ in the prefix)")

# --prefix can change at installation, so the paths in these files are only known then.
install(CODE "
  set(sysconf \"${SAILOR_SYSCONFDIR}\")
  if(sysconf STREQUAL \"\")
    if(CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?/?$\")
      set(sysconf /etc)
    else()
      get_filename_component(sysconf \"\${CMAKE_INSTALL_PREFIX}/etc\" ABSOLUTE)
    endif()
  endif()
  set(spank_dir \"${SAILOR_SPANK_DIR}\")
  get_filename_component(spank_dir \"\${spank_dir}\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
  get_filename_component(data_dir \"\${CMAKE_INSTALL_PREFIX}/share/sailor\" ABSOLUTE)
  # The admin's own file is never overwritten.
  configure_file(\"${PROJECT_SOURCE_DIR}/etc/packaging/sailor.yaml.in\" \"${PROJECT_BINARY_DIR}/install/sailor.yaml\" @ONLY)
  if(NOT EXISTS \"\$ENV{DESTDIR}\${sysconf}/sailor/sailor.yaml\")
    file(INSTALL DESTINATION \"\${sysconf}/sailor\" TYPE FILE FILES \"${PROJECT_BINARY_DIR}/install/sailor.yaml\")
  endif()
" COMPONENT sailor)
if(SAILOR_SLURM)
  install(CODE "
    configure_file(\"${PROJECT_SOURCE_DIR}/etc/plugstack.conf.d/sailor.conf.in\" \"${PROJECT_BINARY_DIR}/install/sailor.conf\" @ONLY)
    file(INSTALL DESTINATION \"\${sysconf}/slurm/plugstack.conf.d\" TYPE FILE FILES \"${PROJECT_BINARY_DIR}/install/sailor.conf\")
  " COMPONENT sailor)
endif()

set(guides admin-guide architecture formats plan-result planner simulator user-guide)
list(TRANSFORM guides REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/etc/doc/\\1.md")
install(FILES ${guides} ${PROJECT_SOURCE_DIR}/etc/doc/job.schema.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT sailor)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/etc/jobs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT sailor)
install(FILES ${PROJECT_SOURCE_DIR}/etc/doc/man/sailor.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT sailor)
install(FILES ${PROJECT_SOURCE_DIR}/etc/doc/man/sailor.yaml.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 COMPONENT sailor)
install(FILES ${PROJECT_SOURCE_DIR}/etc/doc/man/spank_sailor.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT sailor)
install(FILES ${PROJECT_SOURCE_DIR}/etc/completion/sailor DESTINATION share/bash-completion/completions COMPONENT sailor)

set(CPACK_PACKAGE_NAME sailor)
set(CPACK_PACKAGE_VENDOR "Sailor for Slurm")
set(CPACK_PACKAGE_CONTACT "Sailor for Slurm <root@localhost>" CACHE STRING "Maintainer field of the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Planner for LLM training on mixed GPUs, as a Slurm plugin")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
# Files go below /etc as well as below /usr: staged by DESTDIR, and configured as for /usr.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
get_cmake_property(components COMPONENTS)
list(REMOVE_ITEM components Unspecified)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_SAILOR_PACKAGE_NAME sailor)
# The line for plugstack.conf is no conffile: it must go with the plugin that it names.
set(CPACK_DEBIAN_SAILOR_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/etc/packaging/conffiles)
set(CPACK_DEBIAN_SAILOR_PACKAGE_RECOMMENDS "slurm-client")
set(CPACK_DEBIAN_TRAINER_PACKAGE_NAME sailor-trainer)
set(CPACK_DEBIAN_TRAINER_PACKAGE_DEPENDS "sailor (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_SAILOR_PACKAGE_NAME sailor)
set(CPACK_RPM_TRAINER_PACKAGE_NAME sailor-trainer)
set(CPACK_RPM_PACKAGE_LICENSE "see LICENSE")
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/sailor/sailor.yaml")
include(CPack)
