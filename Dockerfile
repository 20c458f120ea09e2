# The app behind its key, on the host's loopback address alone (Linux):
#   docker build -t winnow . && docker run --rm --network host -v winnow-home:/home/winnow winnow
# It prints the address with the key. Texts and results are in the volume.
FROM python:3.11-slim

RUN apt-get update && apt-get install --yes --no-install-recommends make git && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 winnow && mkdir /opt/winnow && chown winnow /opt/winnow
USER winnow
WORKDIR /opt/winnow
COPY --chown=winnow . .
RUN make .venv/.app
ENV WINNOW_HOME=/home/winnow/home WINNOW_DOOR=key
VOLUME /home/winnow
CMD [".venv/bin/python", "app.py", "--no-browser"]
