# The interpreter that every image starts from.
# `evolvarium images build` gives ROOT: an image imported from the distribution's own packages, or a digest-pinned one.
ARG ROOT
FROM ${ROOT}
USER 0
COPY prepare.py /opt/evolvarium/prepare.py
RUN ["python3", "-I", "-B", "/opt/evolvarium/prepare.py", "interpreter"]
WORKDIR /work
ENV PATH=/usr/local/bin:/usr/bin:/bin
