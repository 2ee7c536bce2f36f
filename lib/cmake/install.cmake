include(CMakePackageConfigHelpers)

get_property(components GLOBAL PROPERTY COACCEL_COMPONENTS)
list(TRANSFORM components PREPEND coaccel_ OUTPUT_VARIABLE targets)
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/coaccel)

install(TARGETS ${targets} coaccel_plugin coaccel_coaccel EXPORT coaccel FILE_SET HEADERS)
install(TARGETS coaccel_info coaccel_client_program)
install(TARGETS coaccel_serve_program EXPORT coaccel)
install(TARGETS coaccel_worker_program EXPORT coaccel RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/coaccel)
install(EXPORT coaccel NAMESPACE coaccel:: FILE coaccelTargets.cmake DESTINATION ${folder})
install(FILES LICENSE TYPE DOC)

configure_package_config_file(lib/cmake/coaccelConfig.cmake.in ${PROJECT_BINARY_DIR}/coaccelConfig.cmake
    INSTALL_DESTINATION ${folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/coaccelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/coaccelConfig.cmake ${PROJECT_BINARY_DIR}/coaccelConfigVersion.cmake
    DESTINATION ${folder})
