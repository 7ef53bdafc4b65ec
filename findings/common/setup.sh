# Functions for findings: a temporary folder, pinned packages in it, and comparisons. Sourced, not run.
set -euo pipefail

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT

# python_packages NAME==VERSION...: install the packages in a virtual environment and put its programs first on PATH.
python_packages() {
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    PATH="$folder/venv/bin:$PATH"
}

# newer_python MINOR: make python3 a Python 3.MINOR or newer, from PATH or pyenv. Without one the finding fails.
newer_python() {
    local minor python
    for minor in $(seq 19 -1 "$1"); do
        for python in "python3.$minor" "$(pyenv prefix "3.$minor" 2>/dev/null || true)/bin/python3.$minor"; do
            if "$python" -c pass 2>/dev/null; then
                mkdir "$folder/python"
                ln -s "$("$python" -c 'import sys; print(sys.executable)')" "$folder/python/python3"
                PATH="$folder/python:$PATH"
                return
            fi
        done
    done
    echo "found no Python 3.$1 or newer" >&2
    return 1
}

# maven_packages GROUP:NAME:VERSION...: copy the packages and what they depend on to $folder/jars.
maven_packages() {
    local package group name version dependencies=
    for package in "$@"; do
        IFS=: read -r group name version <<<"$package"
        dependencies+="<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
    done
    cat >"$folder/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>findings</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>$dependencies</dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
  </plugin></plugins></build>
</project>
EOF
    mvn --quiet --batch-mode -Dstyle.color=never -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/jars"
}

# run_java MAIN FILE...: compile the source files against $folder/jars and run the class MAIN.
run_java() {
    local main=$1
    shift
    javac -nowarn -cp "$folder/jars/*" -d "$folder/classes" "$@"
    java -XX:TieredStopAtLevel=1 -cp "$folder/classes:$folder/jars/*" "$main" 2>"$folder/java.log" ||
        { cat "$folder/java.log" >&2; return 1; }
}

# check WHAT EXPECTED FOUND: fail unless both texts are equal.
check() {
    if [ "$2" != "$3" ]; then
        printf 'changed: %s\nexpected: %s\nfound: %s\n' "$1" "$2" "$3" >&2
        exit 1
    fi
    printf 'as recorded: %s\n' "$1"
}
