from pathlib import Path
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class Coaccel(ConanFile):
    name = "coaccel"
    description = "Accelerators for Boost.Asio"
    license = "BSL-1.0"
    topics = ("asio", "coroutines", "gpu", "cuda")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "with_cuda": ["auto", "on", "off"],
        "with_host": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "with_cuda": "auto",
        "with_host": True,
        "boost/*:header_only": True,
    }
    implements = ["auto_shared_fpic"]
    exports = "include/coaccel/core/config.hpp"
    exports_sources = "CMakeLists.txt", "LICENSE", "include/*", "lib/*", "test/*", "!test/package/build/*"
    test_package_folder = "test/package"

    @property
    def _tested(self):
        # Only when asked for: a package is made to be used, and the tests are compiled with the sources' own ./dev test.
        return not self.options.shared and self.conf.get("tools.build:skip_test", default=True, check_type=bool) is False

    def set_version(self):
        config = load(self, Path(self.recipe_folder) / "include/coaccel/core/config.hpp")
        self.version = re.search(r'COACCEL_VERSION_STRING "(.+)"', config).group(1)

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        if self.options.with_host:
            self.requires("eigen/[>=3.4 <4]", visible=False)

    def build_requirements(self):
        if self._tested:
            self.test_requires("doctest/[>=2.4 <3]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["COACCEL_CUDA"] = str(self.options.with_cuda).upper()
        toolchain.cache_variables["COACCEL_HOST"] = bool(self.options.with_host)
        toolchain.cache_variables["COACCEL_TESTS"] = self._tested
        toolchain.cache_variables["COACCEL_EXAMPLES"] = False
        toolchain.cache_variables["COACCEL_BENCH"] = False
        toolchain.cache_variables["COACCEL_PRECOMPILE_HEADERS"] = True
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="coaccel_serve_program")  # the top floor; it pulls in those below
        cmake.build(target="coaccel_client_program")
        cmake.build(target="coaccel_info")
        cmake.build(target="coaccel_worker_program")
        if self._tested:
            cmake.build(target="coaccel_test_core")
            cmake.ctest(["--output-on-failure", "--tests-regex", "^core$"])

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()
        rmdir(self, Path(self.package_folder) / "lib" / "cmake")
        rmdir(self, Path(self.package_folder) / "share")

    def package_info(self):
        def component(name, requires):
            info = self.cpp_info.components[name]
            info.libs = [f"coaccel_{name}"]
            info.requires = requires
            info.set_property("cmake_target_name", f"coaccel::{name}")

        # A Boost that a profile's [platform_requires] takes from the system is no package to point at.
        component("core", ["boost::headers"] if "boost" in self.dependencies else [])
        self.cpp_info.components["core"].system_libs = ["pthread", "dl"]
        # Shared libraries swallow the context, which is private to them.
        context = [] if self.options.shared else ["context"]
        if context:
            component("context", ["core"])
        host = ["host"] if self.options.with_host else []
        if host:
            component("host", ["core"] + context)
        # Whether the build found the CUDA headers, the package knows best.
        cuda = ["cuda"] if list(Path(self.package_folder).glob("lib*/*coaccel_cuda*")) else []
        if cuda:
            component("cuda", ["core"] + context)
            self.cpp_info.components["cuda"].system_libs = ["dl"]
        component("worker", ["core"] + context + cuda)
        self.cpp_info.components["worker"].system_libs = ["dl"]
        component("device", ["core", "worker"] + context + host + cuda)
        component("telemetry", ["device"])
        component("serve", ["telemetry"])
        component("server", ["serve"])
        self.cpp_info.components["plugin"].set_property("cmake_target_name", "coaccel::plugin")
        # Where programs go that are not for people differs between toolchains.
        for program in Path(self.package_folder).rglob("coaccel-worker"):
            self.runenv_info.define_path("COACCEL_WORKER", str(program))
