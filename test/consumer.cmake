# The project in consumer/, built against an installed coaccel and with coaccel as a subdirectory.
if(NOT TARGET coaccel_device OR NOT TARGET coaccel_host)
    return()
endif()

set(work ${CMAKE_CURRENT_BINARY_DIR}/consumer)
# coaccel_consumer(NAME OPTIONS option... [TARGETS target...])
# The programs are optimised ones, in which two copies of a static variable show. Given targets, only these are built.
function(coaccel_consumer name)
    cmake_parse_arguments(arg "" "" "OPTIONS;TARGETS" ${ARGN})
    list(TRANSFORM arg_TARGETS PREPEND "--build-target;")
    add_test(NAME consumer.${name} COMMAND ${CMAKE_CTEST_COMMAND}
        --build-and-test ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${work}/${name}
        --build-noclean
        --build-generator ${CMAKE_GENERATOR}
        ${arg_TARGETS}
        --build-options
            -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
            -DCMAKE_BUILD_TYPE=Release
            "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}"
            "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}"
            ${arg_OPTIONS}
        --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure)
    set_tests_properties(consumer.${name} PROPERTIES LABELS package PROCESSORS 2 TIMEOUT 1500)
endfunction()

add_test(NAME consumer.install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${work}/prefix)
set_tests_properties(consumer.install PROPERTIES LABELS package FIXTURES_SETUP prefix)

# Eigen is for coaccel's own build, so an installed coaccel must do without it.
coaccel_consumer(find_package OPTIONS -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
set_tests_properties(consumer.find_package PROPERTIES FIXTURES_REQUIRED prefix)
# Without CUDA, which coaccel must do without too. Position-independent code lets ccache use the objects of the static
# libraries for the shared ones. Several sources per object, because all of coaccel is compiled.
set(options -DCOACCEL_SOURCE_DIR=${PROJECT_SOURCE_DIR} -DCOACCEL_CUDA=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)
set(targets consumer without_cuda beside_asio telemetry configuration)
coaccel_consumer(add_subdirectory OPTIONS ${options} TARGETS ${targets})
coaccel_consumer(shared OPTIONS ${options} -DBUILD_SHARED_LIBS=ON TARGETS ${targets})
# The second finds what the first has compiled.
set_tests_properties(consumer.shared PROPERTIES DEPENDS consumer.add_subdirectory)
