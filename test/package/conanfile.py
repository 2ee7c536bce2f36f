import os
from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class CoaccelTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "package"), env="conanrun")
            self._check_programs_run()
        self._check_loads_no_cuda()

    def _check_programs_run(self):
        # With nothing in the environment that would help them find their libraries.
        package = Path(self.dependencies["coaccel"].package_folder)
        self.run(f'env -i "{package / "bin" / "coaccel-info"}"')
        self.run(f'env -i "{package / "bin" / "coaccel-client"}" version')

    def _check_loads_no_cuda(self):
        def is_elf(path):
            with path.open("rb") as file:
                return file.read(4) == b"\x7fELF"

        package = Path(self.dependencies["coaccel"].package_folder)
        files = [str(f) for f in package.rglob("*") if f.is_file() and not f.is_symlink() and is_elf(f)]
        script = Path(self.recipe_folder).parent / "loads_no_cuda.cmake"
        self.run(f'cmake "-DFILES={";".join(files)}" -P "{script}"')
